"""The device "numpy": complete, and a network trains on it as on the cpu."""

from pathlib import Path

import numpy as np
import pytest
import taeda_backend_numpy
from sklearn.datasets import load_digits

import taeda as torch
import taeda.nn.functional as F
from taeda import nn
from taeda_testing.conformance import run_backend


def test_every_core_operator_has_a_kernel():
    assert taeda_backend_numpy.backend.missing() == []


def test_it_fits_in_an_afternoon():
    assert len(Path(taeda_backend_numpy.__file__).read_text(encoding="utf-8").splitlines()) < 400


def test_it_conforms():
    report = run_backend("numpy")
    assert report.core.percent == 100
    assert report.everything.percent >= 95
    assert {
        item.name: item.group for item in report.items if item.name in ("exp", "mm", "softmax", "stack")
    } == {
        "exp": "core",
        "mm": "optional",
        "softmax": "decomposed",
        "stack": "composite",
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "complex64"])
def test_bytes_travel_both_ways(dtype):
    x = torch.tensor([[1.0, 2.5], [-3.0, 4.0]]).to(getattr(torch, dtype))
    there = x.to("numpy")
    assert there.device.type == "numpy"
    assert torch.equal(there.t().cpu(), x.t())
    assert torch.equal((there + there).cpu(), x + x)


def test_a_device_is_not_mixed_with_the_cpu():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2).to("numpy") + torch.ones(2)


def test_integers_have_angles_as_on_the_cpu():
    x = torch.tensor([-1, 0, 5], dtype=torch.int8)
    assert torch.equal(x.to("numpy").angle().cpu(), x.angle())


def test_errors_name_the_operator():
    x = torch.arange(4).to("numpy")
    with pytest.raises(IndexError, match="gather: index 5 is out of range for size 4"):
        x.gather(0, torch.tensor([5]).to("numpy"))
    with pytest.raises(ZeroDivisionError, match="floor_divide"):
        x // x


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
    there, here = train("numpy", 20), train("cpu", 20)
    assert there == pytest.approx(here, rel=1e-3)
    assert there[-1] < there[0] / 2
