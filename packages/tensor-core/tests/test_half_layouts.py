"""Reductions, running sums, softmax and normalisations of halves in every order of memory, against NumPy in float64."""

import numpy as np
import pytest

from taeda_registry.slots import tensor as tt

SEED = 17
# Of one converted piece and of several, along either side; dimensions that merge and such that do not.
SHAPES = (
    (3, 5),
    (2, 9_000),
    (9_000, 2),
    (5_000, 12),
    (4, 33, 65),
    (2, 6, 31, 35),
    (30_000,),
    (3, 0, 4),
    (2, 4, 5_000, 1),
)
ORDERS = ("row major", "turned", "every other", "channels last", "repeated")
UNITS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def arranged(values, name, order):
    """A tensor of these values, or of a part of them, in an order of memory."""
    x = tt.tensor(values).to(getattr(tt, name))
    if order == "turned":
        return x.transpose(0, -1)
    if order == "every other":
        return x[..., ::2]
    if order == "channels last":
        return x.contiguous(memory_format=tt.channels_last)
    if order == "repeated":
        return x[:1].expand(x.shape)
    return x


CASES = [
    (shape, order, name)
    for shape in SHAPES
    for order in ORDERS
    for name in UNITS
    if order != "channels last" or len(shape) == 4
]


@pytest.fixture
def half(request):
    """A tensor, its numbers, and the distance of its dtype's neighbours around 1."""
    shape, order, name = request.param
    print("seed", SEED)
    x = arranged(np.random.default_rng(SEED).standard_normal(shape), name, order)
    return x, x.to(tt.float64).numpy(), UNITS[name]


everywhere = pytest.mark.parametrize("half", CASES, indirect=True, ids=str)
of_matrices = pytest.mark.parametrize(
    "half", [case for case in CASES if len(case[0]) > 1 and 0 not in case[0]], indirect=True, ids=str
)


def near(found, wanted, unit, terms=1.0):
    """Within one rounding of the result, and what float32 loses on the way, where `terms` are added up."""
    lost = 2.0**-20 * np.max(terms, initial=1.0) + 2.0**-24
    np.testing.assert_allclose(found.to(tt.float64).numpy(), wanted, rtol=unit, atol=lost)


def axes(array):
    """None, each axis, and the first with the last."""
    return [None, *range(array.ndim), *([(0, array.ndim - 1)] if array.ndim > 1 else [])]


@everywhere
def test_reductions(half):
    x, numbers, unit = half
    for axis in axes(numbers):
        given = tuple(range(x.ndim)) if axis is None else axis
        near(x.sum(given), numbers.sum(axis), unit, np.abs(numbers).sum(axis))
        near(tt.linalg.vector_norm(x, 2, given), np.sqrt((numbers**2).sum(axis)), unit)
        near(tt.linalg.vector_norm(x, 1, given), np.abs(numbers).sum(axis), unit)
        assert np.array_equal(tt.any(x > 9, given).numpy(), (numbers > 9).any(axis))
        if x.numel():
            near(x.mean(given), numbers.mean(axis), unit)
            near(x.var(given, correction=0), numbers.var(axis), unit)
            assert np.array_equal(x.amax(given).to(tt.float64).numpy(), numbers.max(axis))
            assert np.array_equal(x.amin(given).to(tt.float64).numpy(), numbers.min(axis))


@everywhere
def test_running_sums_and_extrema(half):
    x, numbers, unit = half
    for axis in range(x.ndim):
        near(x.cumsum(axis), numbers.cumsum(axis), unit, np.abs(numbers).sum(axis))
        if x.numel():
            assert np.array_equal(
                x.cummax(axis)[0].to(tt.float64).numpy(), np.maximum.accumulate(numbers, axis)
            )


@everywhere
def test_softmax_and_its_gradient(half):
    x, numbers, unit = half
    for axis in range(x.ndim):
        shifted = numbers - numbers.max(axis, keepdims=True, initial=-1e9)
        weights = np.exp(shifted) / np.exp(shifted).sum(axis, keepdims=True)
        near(tt.softmax(x, axis), weights, unit)
        near(tt.log_softmax(x, axis), np.log(weights, where=weights > 0, out=weights * 0), unit)
        y = tt.softmax(x, axis)
        up = tt.cos(x)
        known, given = y.to(tt.float64).numpy(), up.to(tt.float64).numpy()
        found = tt.ops.softmax_backward(up, y, axis)
        near(found, known * (given - (given * known).sum(axis, keepdims=True)), unit, 4)


def normalised(numbers, axes_, eps=1e-5):
    centred = numbers - numbers.mean(axes_, keepdims=True)
    return centred / np.sqrt(numbers.var(axes_, keepdims=True) + eps)


@of_matrices
def test_normalisations(half):
    x, numbers, unit = half
    near(tt.ops.native_layer_norm(x, [x.shape[-1]], None, None, 1e-5)[0], normalised(numbers, -1), unit, 4)
    others = tuple(d for d in range(x.ndim) if d != 1)
    found = tt.ops.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0]
    near(found, normalised(numbers, others), unit, 4)
    if x.ndim > 2 and x.shape[1] % 2 == 0:
        grouped = numbers.reshape(len(numbers), 2, -1)
        found = tt.ops.native_group_norm(x, 2, None, None, 1e-5)[0]
        near(found, normalised(grouped, -1).reshape(numbers.shape), unit, 4)
