"""The network of the digits example, unchanged, on strangers' parts: its losses are those of our own."""

import json
from pathlib import Path

import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits"

TRAIN = """
    import json
    import taeda as torch
    import taeda.nn.functional as F
    import taeda_registry
    from model import DigitNet
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor((digits.images[:, None] / 16).tolist(), dtype=torch.float64).to({device!r})
    labels = torch.tensor(digits.target.tolist()).to({device!r})
    torch.manual_seed(0)
    model = DigitNet().to(torch.float64).to({device!r})
    # Devices draw numbers of their own.
    model.dropout.p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for begin in range(0, 20 * 64, 64):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[begin : begin + 64]), labels[begin : begin + 64])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps([taeda_registry.active("autograd").name, str(loss.device), losses]))
"""


def losses(site, device="cpu", **environment):
    site.paths.append(DIGITS)
    (line,) = site.lines(TRAIN.format(device=device), **environment)
    return json.loads(line)


def test_on_a_tape(site):
    _, _, expected = losses(site)
    site.example("taeda-autograd-tape")
    provider, _, found = losses(site, TAEDA_AUTOGRAD="taeda_autograd_tape")
    assert "tape" in provider
    assert found == pytest.approx(expected, rel=1e-9)
    assert found[-1] < found[0] / 2


def test_on_the_numpy_device(site):
    _, _, expected = losses(site)
    site.example("taeda-backend-numpy")
    _, device, found = losses(site, "numpy")
    assert device.startswith("numpy")
    assert found == pytest.approx(expected, rel=1e-9)
