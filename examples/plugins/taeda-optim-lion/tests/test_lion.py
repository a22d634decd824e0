"""Lion against its formula, as an addition and as the provider of the slot."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from taeda_optim_lion import Lion

import taeda


def formula(p, grads, lr, betas=(0.9, 0.99), weight_decay=0.0):
    m = np.zeros_like(p)
    for g in grads:
        step = np.sign(betas[0] * m + (1 - betas[0]) * g)
        p = p * (1 - lr * weight_decay) - lr * step
        m = betas[1] * m + (1 - betas[1]) * g
    return p


def inputs():
    rng = np.random.default_rng(4)
    return rng.standard_normal((3, 2)), [rng.standard_normal((3, 2)) for _ in range(5)]


@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.8)}, {"weight_decay": 0.3}])
def test_steps_equal_the_formula(options):
    start, grads = inputs()
    p = taeda.tensor(start).requires_grad_()
    optimizer = Lion([p], lr=0.1, **options)
    for grad in grads:
        p.grad = taeda.tensor(grad)
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), formula(start, grads, 0.1, **options), rtol=1e-12)


def test_state_round_trip():
    start, grads = inputs()
    p = taeda.tensor(start).requires_grad_()
    optimizer = Lion([p], lr=0.1)
    for grad in grads[:2]:
        p.grad = taeda.tensor(grad)
        optimizer.step()
    q = p.detach().clone().requires_grad_()
    other = Lion([q], lr=0.5)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for grad in grads[2:]:
        p.grad = q.grad = taeda.tensor(grad)
        optimizer.step()
        other.step()
    assert p.tolist() == q.tolist()


def test_learns():
    taeda.manual_seed(0)
    x = taeda.randn(64, 2)
    y = x @ taeda.tensor([[1.0], [-2.0]])
    model = taeda.nn.Linear(2, 1)
    optimizer = Lion(model.parameters(), lr=0.02)
    losses = []
    for _ in range(400):
        optimizer.zero_grad()
        loss = optimizer.step(lambda: backward(model, x, y))
        losses.append(loss.item())
    assert losses[-1] < 1e-2 < losses[0]


def backward(model, x, y):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    return loss


def test_wrong_options_are_errors():
    with pytest.raises(ValueError, match=r"Lion: expected lr >= 0.*found lr -1"):
        Lion([taeda.zeros(1)], lr=-1)
    with pytest.raises(ValueError, match="betas"):
        Lion([taeda.zeros(1)], betas=(0.9, 1.0))


def run(*arguments, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TAEDA_")}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_conforms_as_provider(tmp_path):
    file = tmp_path / "report.json"
    result = run("-m", "taeda_testing", "provider", "optim:taeda_optim_lion", "--json", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(file.read_text())["scores"]["all"]["percent"] == 100.0


BESIDE = """
import taeda, taeda_optim
from taeda.optim import *
from taeda.optim.lr_scheduler import StepLR
from taeda.optim.optimizer import Optimizer as Base
import taeda.optim.lr_scheduler as schedules

assert all(getattr(taeda.optim, name) is getattr(taeda_optim, name) for name in taeda_optim.__all__)
assert StepLR is schedules.StepLR is taeda_optim.lr_scheduler.StepLR and Base is taeda.optim.Optimizer
assert {"Lion", "RMSprop", "lr_scheduler"} <= set(dir(taeda.optim)) and not hasattr(taeda.optim, "Tiger")
print(taeda.optim.Lion.__module__, RMSprop.__module__, Lion is taeda.optim.Lion)
"""


def test_as_provider_it_stands_beside_the_others():
    result = run("-c", BESIDE, TAEDA_OPTIM="taeda_optim_lion")
    assert result.stdout.split() == ["taeda_optim_lion.lion", "taeda_optim.adaptive", "True"], result.stderr
