"""Steps of optimizers as functions of lists, beside PyTorch's."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

import taeda  # noqa: E402

DECAYED = {"lr": 0.1, "weight_decay": 0.1}
ADAM = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}
# Of each: how many lists of states (None for one whose tensors appear with the first step), whether steps are counted,
# and options.
FORMS = {
    "sgd": (None, False, {**DECAYED, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": True}),
    "adam": (3, True, {**ADAM, "amsgrad": True}),
    "adamw": (3, True, {**ADAM, "amsgrad": False}),
    "adagrad": (1, True, {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.1, "eps": 1e-10, "maximize": False}),
    "adadelta": (2, True, {"lr": 0.1, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False}),
    "adamax": (2, True, ADAM),
    "nadam": (3, True, {**ADAM, "momentum_decay": 4e-3}),
    "radam": (2, True, ADAM),
    "rmsprop": (3, True, {**DECAYED, "alpha": 0.9, "eps": 1e-8, "momentum": 0.9, "centered": True}),
    "rprop": (2, True, {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}),
    "asgd": (3, True, {"lambd": 1e-4, "lr": 0.1, "t0": 2.0, "alpha": 0.75, "weight_decay": 0.1}),
}  # fmt: skip


def steps_of(lib, name):
    count, counted, options = FORMS[name]
    function = getattr(importlib.import_module(f"{lib.__name__}.optim.{name}"), name)
    rng = np.random.default_rng(3)
    draw = lambda: lib.from_numpy(rng.standard_normal((3, 2)))  # noqa: E731
    params = [draw(), draw()]
    states = [[None, None]] if count is None else [[lib.zeros_like(p) for p in params] for _ in range(count)]
    if name == "nadam":
        states[2] = [lib.ones((), dtype=lib.float64) for _ in params]
    if name == "rprop":
        states[1] = [lib.full_like(p, 0.1) for p in params]
    if name == "asgd":
        states[1] = [lib.ones((), dtype=lib.float64) for _ in params]
        states[2] = [lib.full((), 0.1, dtype=lib.float64) for _ in params]
    counts = [[lib.zeros(()) for _ in params]] if counted else []
    for _ in range(4):
        function(params, [draw(), draw()], *states, *counts, **options)
    return [np.array(t.tolist()) for part in (params, *states, *counts) for t in part]


@pytest.mark.parametrize("name", FORMS)
def test_steps_are_pytorchs(name):
    importlib.import_module("taeda.optim._functional")
    for mine, theirs in zip(steps_of(taeda, name), steps_of(torch, name), strict=True):
        # PyTorch's asgd keeps its rate as a tensor of single precision.
        np.testing.assert_allclose(mine, theirs, rtol=1e-6 if name == "asgd" else 1e-10, atol=1e-12)
