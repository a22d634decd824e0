"""The device "sim", as installed."""

import numpy as np
import pytest
import taeda_backend_sim
from sklearn.datasets import load_digits

import taeda as torch
import taeda.nn.functional as F
from taeda import nn


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
def test_bytes_travel_both_ways(dtype):
    x = torch.tensor([[1.0, 2.5], [-3.0, 4.0]]).to(getattr(torch, dtype))
    there = x.to("sim")
    assert there.device.type == "sim"
    assert torch.equal(there.t().cpu(), x.t())
    assert torch.equal((there + there).cpu(), x + x)


def test_a_device_is_not_mixed_with_the_cpu():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2).to("sim") + torch.ones(2)


def train(device, steps):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    digits = load_digits()
    images = torch.from_numpy((digits.images[:, None] / 16).astype(np.float32))
    labels = torch.from_numpy(digits.target.astype(np.int64))
    losses = []
    for step in range(steps):
        at = slice(64 * step, 64 * step + 64)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[at].to(device)), labels[at].to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_network_trains_to_the_losses_of_the_cpu():
    there, here = train("sim", 20), train("cpu", 20)
    assert there == pytest.approx(here, rel=1e-3)
    assert there[-1] < there[0] / 2


def test_convolutions_lie_row_by_row_and_poolings_as_their_input():
    x = torch.arange(2 * 3 * 8 * 8.0).reshape(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    weight = torch.ones(4, 3, 3, 3)
    y = F.conv2d(x.to("sim"), weight.to("sim"))
    assert y.is_contiguous()
    assert torch.equal(y.cpu(), F.conv2d(x, weight))
    z = F.max_pool2d(x.to("sim"), 2)
    assert z.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(z.cpu(), F.max_pool2d(x, 2))


def test_sums_of_a_racing_device_differ_and_are_told_to_who_wants_them_not_to():
    source = torch.tensor([1.0, 1e17, -1e17]).to("sim")
    places = torch.zeros(3, dtype=torch.int64).to("sim")

    def add():
        return torch.zeros(1).to("sim").scatter_add(0, places, source).item()

    assert {add() for _ in range(4)} == {add()}
    with taeda_backend_sim.racing():
        assert {add() for _ in range(2)} == {0.0, 1.0}
        torch.use_deterministic_algorithms(True)
        try:
            with pytest.raises(RuntimeError, match="scatter_add: has no deterministic implementation"):
                add()
        finally:
            torch.use_deterministic_algorithms(False)
