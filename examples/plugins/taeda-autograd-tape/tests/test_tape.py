"""The tape against differences and against taeda-autograd, each provider in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import numpy as np
import taeda as torch
import taeda.nn.functional as F
from sklearn.datasets import load_digits
from taeda import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2),
    nn.Linear(8 * 16, 32), nn.ReLU(), nn.Linear(32, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
digits = load_digits()
images = torch.from_numpy((digits.images[:, None] / 16).astype(np.float32))
labels = torch.from_numpy(digits.target.astype(np.int64))
losses = []
for step in range(20):
    at = slice(64 * step, 64 * step + 64)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images[at]), labels[at])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
import taeda_registry
print(json.dumps([taeda_registry.active("autograd").name, losses]))
"""


def run(program, provider):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TAEDA_AUTOGRAD": provider},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_network_trains_to_the_same_losses():
    name, tape = run(PROGRAM, "taeda_autograd_tape")
    _, reference = run(PROGRAM, "taeda")
    assert "tape" in name
    assert tape == pytest.approx(reference, rel=1e-4)
    assert tape[-1] < tape[0] / 2


RULES = """
import json
import numpy as np
import taeda as torch

cases = {
    "add": lambda x, y: x + y[0] * 2, "div": lambda x, y: x / (y + 3), "pow": lambda x, y: (x + 3) ** y,
    "matmul": lambda x, y: x @ y.t(), "softmax": lambda x, y: x.softmax(1) * y,
    "tanh": lambda x, y: x.tanh() - y.sigmoid(),
    "views": lambda x, y: x.t()[1:].unsqueeze(0) * y.t()[1], "cat": lambda x, y: torch.cat([x, y * 2], 1),
    "mean": lambda x, y: x.mean(1) * y.sum(1), "max": lambda x, y: x.max(dim=1)[0] + y.amax(),
    "where": lambda x, y: torch.where(x > y, x * 2, y),
    "expand": lambda x, y: x[:, :1].expand(3, 4) * y,
}
rng = np.random.default_rng(5)
worst = {}
for name, f in cases.items():
    x, y = (torch.from_numpy(rng.standard_normal((3, 4))).requires_grad_() for _ in range(2))
    w = torch.from_numpy(rng.standard_normal(tuple(f(x, y).shape)))
    found = torch.autograd.grad((f(x, y) * w).sum(), [x, y])
    error = 0.0
    for t, g in zip((x, y), found):
        for i in np.ndindex(3, 4):
            values = []
            for step in (1e-6, -1e-6):
                a = t.detach().numpy().copy(); a[i] += step
                moved = torch.from_numpy(a)
                with torch.no_grad():
                    values.append((f(moved if t is x else x, moved if t is y else y) * w).sum().item())
            error = max(error, abs((values[0] - values[1]) / 2e-6 - g[i].item()))
    worst[name] = error
print(json.dumps(worst))
"""


def test_rules_agree_with_differences():
    worst = run(RULES, "taeda_autograd_tape")
    assert len(worst) == 12 and all(error < 1e-6 for error in worst.values()), worst


BEHAVIOUR = """
import json
import taeda as torch

out = []
x = torch.tensor([2.0, 3.0], requires_grad=True)
(first,) = torch.autograd.grad((x ** 3).sum(), [x], create_graph=True)
out.append(torch.autograd.grad(first.sum(), [x])[0].tolist())
with torch.no_grad():
    out.append((x * 2).requires_grad)
def message(f):
    try:
        f()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
out.append(message(lambda: (x * 2).backward()))
out.append(message(lambda: (x * 2).add_(1)))
out.append(message(lambda: torch.erfinv(x / 10).sum().backward()))
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t ** 3
    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2
Cube.apply(x).sum().backward()
out.append(x.grad.tolist())
print(json.dumps(out))
"""


def test_behaviour():
    second, recorded, scalar, in_place, missing, cube = run(BEHAVIOUR, "taeda_autograd_tape")
    assert second == [12.0, 18.0] and recorded is False and cube == [12.0, 27.0]
    assert scalar.startswith("RuntimeError: backward: a gradient must be given")
    assert in_place.startswith("RuntimeError: add_: taeda-autograd-tape records no operation that writes")
    assert missing.startswith("NotImplementedError: erfinv: taeda-autograd-tape has no derivative")
