"""Activations and their gradients against formulas in float64 and finite differences."""

import math

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import ops

ERF = np.vectorize(math.erf)


def tensor(array):
    return taeda.from_numpy(np.array(array))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


# name: (arguments, formula, gradient operator or None, whether the gradient takes the output)
ACTIVATIONS = {
    "relu": ((), lambda x: np.maximum(x, 0), ("threshold_backward", (0,)), False),
    "relu6": ((), lambda x: np.clip(x, 0, 6), None, False),
    "leaky_relu": ((0.1,), lambda x: np.where(x > 0, x, 0.1 * x), ("leaky_relu_backward", (0.1,)), False),
    "elu": (
        (1.5, 1, 1),
        lambda x: np.where(x > 0, x, 1.5 * np.expm1(x)),
        ("elu_backward", (1.5, 1, 1)),
        False,
    ),
    "selu": (
        (),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        None,
        False,
    ),
    "celu": ((2.0,), lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2)), None, False),
    "gelu": ((), lambda x: x * 0.5 * (1 + ERF(x / math.sqrt(2))), ("gelu_backward", ()), False),
    "silu": ((), lambda x: x * sigmoid(x), ("silu_backward", ()), False),
    "mish": ((), lambda x: x * np.tanh(softplus(x)), ("mish_backward", ()), False),
    "softplus": ((2, 20), lambda x: softplus(2 * x) / 2, ("softplus_backward", (2, 20)), False),
    "softsign": ((), lambda x: x / (1 + abs(x)), None, False),
    "tanhshrink": ((), lambda x: x - np.tanh(x), None, False),
    "hardtanh": ((-1, 2), lambda x: np.clip(x, -1, 2), ("hardtanh_backward", (-1, 2)), False),
    "hardswish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6, ("hardswish_backward", ()), False),
    "hardsigmoid": ((), lambda x: np.clip(x + 3, 0, 6) / 6, ("hardsigmoid_backward", ()), False),
    "hardshrink": ((0.5,), lambda x: np.where(abs(x) > 0.5, x, 0), ("shrink_backward", (0.5,)), False),
    "softshrink": (
        (0.5,),
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0),
        ("shrink_backward", (0.5,)),
        False,
    ),
    "logsigmoid": ((), lambda x: -softplus(-x), ("logsigmoid_backward", ()), False),
    "threshold": ((0.2, -7), lambda x: np.where(x > 0.2, x, -7), ("threshold_backward", (0.2,)), False),
    "sigmoid": ((), sigmoid, ("sigmoid_backward", ()), True),
    "tanh": ((), np.tanh, ("tanh_backward", ()), True),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name, dtype):
    arguments, formula, _, _ = ACTIVATIONS[name]
    x = np.linspace(-9, 9, 400).reshape(20, 20).astype(dtype)
    function = getattr(ops, name)
    tolerance = {"float32": 2e-6, "float64": 1e-13}[dtype]
    expected = formula(x.astype("float64"))
    np.testing.assert_allclose(
        function(tensor(x), *arguments).numpy(), expected, rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        function(tensor(x).T, *arguments).numpy(), expected.T, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", [n for n, record in ACTIVATIONS.items() if record[2]])
def test_gradients(name):
    _, formula, (backward, arguments), takes_output = ACTIVATIONS[name]
    x = np.linspace(-6.03, 6.07, 97)
    step = 1e-6
    expected = (formula(x + step) - formula(x - step)) / (2 * step) * 3
    saved = tensor(formula(x) if takes_output else x)
    result = getattr(ops, backward)(taeda.full((97,), 3.0, dtype=taeda.float64), saved, *arguments)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_gelu_by_tanh():
    x = np.linspace(-5, 5, 101)
    formula = lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))  # noqa: E731
    np.testing.assert_allclose(ops.gelu(tensor(x), approximate="tanh").numpy(), formula(x), atol=1e-13)
    slope = (formula(x + 1e-6) - formula(x - 1e-6)) / 2e-6
    result = ops.gelu_backward(taeda.ones(101, dtype=taeda.float64), tensor(x), approximate="tanh")
    np.testing.assert_allclose(result.numpy(), slope, atol=1e-7)
    with pytest.raises(RuntimeError, match="approximate"):
        ops.gelu(tensor(x), approximate="erf")


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 100), (100, 3), (2, 3, 4), (5, 2000)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_softmax(shape, dtype):
    a = np.random.default_rng(3).normal(size=shape) * 10
    x = tensor(a).to(getattr(taeda, dtype))
    a = x.to(taeda.float64).numpy()
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
    for axis in range(max(1, len(shape))):
        wide = a.reshape(1) if not shape else a
        shifted = wide - wide.max(axis, keepdims=True)
        logs = (shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).reshape(shape)
        np.testing.assert_allclose(
            taeda.softmax(x, axis).to(taeda.float64).numpy(), np.exp(logs), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            taeda.log_softmax(x, axis).to(taeda.float64).numpy(), logs, rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_gradients(axis):
    rng = np.random.default_rng(4)
    x, g = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    y = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    result = ops.softmax_backward(tensor(g), tensor(y), axis)
    np.testing.assert_allclose(result.numpy(), y * (g - (g * y).sum(axis, keepdims=True)), atol=1e-14)
    result = ops.log_softmax_backward(tensor(g), tensor(np.log(y)), axis)
    np.testing.assert_allclose(result.numpy(), g - y * g.sum(axis, keepdims=True), atol=1e-14)


def test_softmax_of_large_numbers():
    assert taeda.softmax(taeda.tensor([1000.0, 1000.0]), 0).tolist() == [0.5, 0.5]
    assert taeda.softmax(taeda.tensor([0.0, -float("inf")]), 0).tolist() == [1.0, 0.0]


def test_prelu_and_glu():
    x = np.random.default_rng(5).normal(size=(2, 4, 3))
    w = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(taeda.prelu(tensor(x), tensor(w)).numpy(), np.where(x > 0, x, x * w[:, None]))
    np.testing.assert_allclose(ops.glu(tensor(x), 1).numpy(), x[:, :2] * sigmoid(x[:, 2:]))
    with pytest.raises(RuntimeError, match="prelu"):
        taeda.prelu(tensor(x), tensor(w[:3]))


def test_dropout():
    taeda.manual_seed(3)
    x = taeda.ones(100_000)
    y = taeda.dropout(x, 0.25, True)
    kept = y != 0
    assert abs(kept.to(taeda.float32).mean().item() - 0.75) < 0.01
    np.testing.assert_allclose(y[kept].numpy(), 1 / 0.75, rtol=1e-6)
    assert taeda.dropout(x, 0.25, False) is x
    assert taeda.dropout(x, 1.0, True).sum().item() == 0
    with pytest.raises(ValueError, match="'p'"):
        taeda.dropout(x, 1.5, True)
