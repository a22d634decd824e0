"""Activations whose options and shapes are their own; values of the others are held to their records in test_unary."""

import math

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import ops


def tensor(array):
    return taeda.from_numpy(np.array(array))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


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


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_takes_a_dtype_by_position(name):
    x = taeda.tensor([[1.0, 2.0]])
    for made in (getattr(taeda, name)(x, 1, taeda.float64), getattr(x, name)(1, taeda.float64)):
        assert made.dtype == taeda.float64
        assert made.tolist() == getattr(x.double(), name)(1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_rows_of_any_length(dtype):
    """Few and many rows, shorter than a vector, whole ones, and rests; a NaN at any place makes its row NaN alone."""
    rng = np.random.default_rng(41)
    for n in [*range(1, 70), 127, 197, 1025]:
        x = rng.standard_normal((4 if n % 2 else 100, n)).astype(dtype) * 20
        x[1, rng.integers(n)] = np.nan
        x[2, : n // 2] = -np.inf
        e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
        expected = e / e.sum(1, keepdims=True)
        tolerance = 5e-6 if dtype == "float32" else 1e-13  # differences of numbers up to 80
        got = taeda.softmax(taeda.from_numpy(x), 1).numpy()
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-37, err_msg=str(n))
        got = taeda.log_softmax(taeda.from_numpy(x), 1).numpy()
        with np.errstate(divide="ignore"):
            logarithms = np.log(expected)
        close = np.isfinite(logarithms)
        np.testing.assert_allclose(got[close], logarithms[close], rtol=tolerance, atol=tolerance)
        assert np.isnan(got[1]).all() and np.isneginf(got[2, : n // 2]).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_gradients_of_a_threshold_of_whole_numbers(dtype):
    grad, x = np.array([1, 2, 3, 4], dtype), np.array([0, 1, 2, 3], dtype)
    for at in (1, 1.5):
        found = ops.threshold_backward(tensor(grad), tensor(x), at)
        assert found.numpy().dtype == grad.dtype
        np.testing.assert_array_equal(found.numpy(), np.where(x > at, grad, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex128"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_glu_in_every_order_of_memory(order, dtype):
    """Lines shorter and longer than what is converted at a time; halves with gaps, gradients that lie otherwise."""
    rng = np.random.default_rng(8)
    print("seed 8")
    unit = {"float32": 1e-6, "float64": 1e-14, "bfloat16": 8e-3, "complex128": 1e-14}[dtype]
    back = np.argsort(order).tolist()

    def draw(sizes, order, back, step=1):
        kept = [sizes[d] for d in order]
        kept[-1] *= step
        a = rng.normal(size=kept) + (1j * rng.normal(size=kept) if dtype == "complex128" else 0)
        return tensor(a).to(getattr(taeda, dtype))[..., ::step].permute(back)

    wide = np.complex128 if dtype == "complex128" else np.float64
    plain = lambda t: t.to(taeda.complex128 if dtype == "complex128" else taeda.float64).numpy().astype(wide)  # noqa: E731
    for sizes in ((2, 6, 4, 2), (2, 4, 10, 600)):
        for dim in range(4):
            half = [size // 2 if d == dim else size for d, size in enumerate(sizes)]
            for step, up_order in ((1, order), (2, order), (1, (0, 1, 2, 3))):
                x = draw(sizes, order, back, step)
                up = draw(half, up_order, np.argsort(up_order).tolist())
                value, gate = np.split(plain(x), 2, dim)
                s, left, g = sigmoid(gate), sigmoid(-gate), plain(up)
                np.testing.assert_allclose(plain(ops.glu(x, dim)), value * s, rtol=unit, atol=unit)
                slope = np.concatenate((g * np.conj(s), g * np.conj(value * s * left)), dim)
                np.testing.assert_allclose(plain(ops.glu_backward(up, x, dim)), slope, rtol=unit, atol=unit)


def test_glu_refuses():
    with pytest.raises(RuntimeError, match="glu: dimension 1 has size 3, expected an even size"):
        ops.glu(taeda.zeros(2, 3))
    with pytest.raises(NotImplementedError, match=r"glu.*int64"):
        ops.glu(taeda.zeros(4, dtype=taeda.int64))
    with pytest.raises(RuntimeError, match=r"glu_backward: argument 'grad' has shape \[?\(?4"):
        ops.glu_backward(taeda.zeros(4), taeda.zeros(4), 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_softplus_far_below_its_threshold(dtype):
    x = tensor([-4.0, -1.0, 0.0, 60.0, 66.0, 68.0, 69.0, 300.0]).to(getattr(taeda, dtype))
    found = ops.softplus(x, 1.3, 1e4).double().numpy()
    exact = np.logaddexp(0, 1.3 * x.double().numpy()) / 1.3
    np.testing.assert_allclose(found, exact, rtol=1e-2 if dtype in ("float16", "bfloat16") else 1e-6)
    assert ops.softplus(tensor([math.inf]), 1.0, math.inf).item() == math.inf


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
@pytest.mark.parametrize("bound", [0.1, 0.3, 0.7])
def test_hardshrink_leaves_out_its_bound_of_sixteen_bits(dtype, bound):
    edge = taeda.tensor(bound, dtype=dtype).item()
    x = taeda.tensor([-edge, edge, 2 * edge], dtype=dtype)
    assert ops.hardshrink(x, bound).tolist() == [0, 0, 2 * edge]
