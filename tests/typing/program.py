"""A program as users write it; type checkers must understand it and know the types that are asserted."""

from __future__ import annotations

from typing import assert_type

import taeda
import taeda as torch
from taeda import Tensor, nn, optim
from taeda.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two layers and an activation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).relu()
        out: Tensor = self.second(hidden)
        return out


def train(steps: int) -> float:
    """Fit the net to which half of a plane points lie in; the last loss."""
    taeda.manual_seed(0)
    x = torch.randn(64, 2)
    y = (x[:, 0] > 0).long()
    model = Net(8)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    last = 0.0
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    for _ in range(steps):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            last = loss.item()
    return last


def shapes() -> None:
    """What each call returns."""
    a = torch.zeros(2, 3, dtype=torch.float64)
    assert_type(a, Tensor)
    assert_type(a.shape, torch.Size)
    assert_type(a.sum(dim=1, keepdim=True), Tensor)
    assert_type(a @ a.T, Tensor)
    assert_type(2 * a + 1, Tensor)
    assert_type(a.reshape(3, 2).permute((1, 0)), Tensor)
    values, indices = a.max(dim=1)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(a.max(dim=1).values, Tensor)
    assert_type(a.add_(1), Tensor)
    assert_type(torch.allclose(a, a), bool)
    assert_type(a.size(0), int)
    assert_type(a.float().dtype, torch.dtype)


if __name__ == "__main__":
    shapes()
    print(train(2))
