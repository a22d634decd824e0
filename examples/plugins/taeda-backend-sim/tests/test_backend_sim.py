"""The device "sim", as installed."""

import numpy as np
import pytest
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
