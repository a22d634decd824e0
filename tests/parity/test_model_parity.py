"""One training step of every benchmark model in float64 beside PyTorch: loss and the gradient of every parameter."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch", reason="the models are compared with PyTorch, which is not installed")

SEED = 3
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Smaller than what is measured, so that float64 takes seconds: settings of the model's module.
SMALL = {
    "mlp": {},
    "digits": {},
    "alexnet": {"BATCH": 2, "SIDE": 96},
    "vgg19": {"BATCH": 1, "SIDE": 48},
    "resnet50": {"BATCH": 2, "SIDE": 64},
    "mobilenet_v1": {"BATCH": 2, "SIDE": 64},
    "gnmt": {"BATCH": 2},
    "ncf": {},
    "vit_tiny": {"BATCH": 2, "SIDE": 32, "LAYERS": 2},
    "gpt2": {"VOCABULARY": 500, "FEATURES": 48, "LAYERS": 2, "LENGTH": 16},
    "bert_layer": {"LENGTH": 16},
    "lstm": {"BATCH": 2, "LENGTH": 8, "FEATURES": 64},
}


def first_step(program, library, weights):
    library.manual_seed(SEED)
    model = program.build(library, dropout=0.0)
    if weights is not None:
        model.load_state_dict({name: library.from_numpy(value) for name, value in weights.items()})
    model = model.to(library.float64).train()
    inputs, target = program.make_batch(library, np.random.default_rng(SEED))
    *inputs, target = (x.to(library.float64) if x.is_floating_point() else x for x in (*inputs, target))
    loss = program.loss(library, model(*inputs), target)
    loss.backward()
    return model, loss.item(), {name: p.grad.numpy() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", SMALL)
def test_first_step(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    program = importlib.import_module(f"models.{name}")
    for setting, value in SMALL[name].items():
        monkeypatch.setattr(program, setting, value)
    torch.manual_seed(SEED)
    weights = {k: v.numpy().copy() for k, v in program.build(torch, dropout=0.0).state_dict().items()}
    model, loss, gradients = first_step(program, taeda, weights)
    _, expected_loss, expected = first_step(program, torch, weights)
    assert loss == pytest.approx(expected_loss, rel=1e-10)
    assert gradients.keys() == expected.keys()
    for key, gradient in gradients.items():
        # Sums of many terms cancel: the measure is the largest entry of the parameter's gradient.
        scale = np.abs(expected[key]).max()
        np.testing.assert_allclose(gradient, expected[key], rtol=0, atol=1e-10 * scale + 1e-14, err_msg=key)
    sys.modules.pop(f"models.{name}", None)
    assert next(model.parameters()).dtype is taeda.float64
