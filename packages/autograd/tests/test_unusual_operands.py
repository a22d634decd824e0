"""Gradients where operands are of another dtype, have no dimension or no elements, or are not numbers."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import gradcheck

ops = taeda.ops


def float64(values, grad=True):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=grad)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint64"])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_beside_integers(name, dtype):
    """Against NumPy: the gradient goes where the float is the smaller (larger) one, and half of it at a tie."""
    low = {"int8": -128, "int64": -(2**63)}.get(dtype, 0)
    whole = np.array([low, 0, 1, 1], dtype)
    x = float64([0.25, 0.25, 0.25, 1.0])
    getattr(taeda, name)(taeda.from_numpy(whole), x).sum().backward()
    values = whole.astype(np.float64)
    wins = x.detach().numpy() < values if name == "minimum" else x.detach().numpy() > values
    assert x.grad.tolist() == np.where(x.detach().numpy() == values, 0.5, wins).tolist()


def test_relu_keeps_the_gradient_of_what_is_not_a_number():
    """It must not look as if nothing depended on the element."""
    for call in (taeda.relu, lambda t: ops.threshold(t, 0.0, 0.0)):
        x = float64([np.nan, 1.0, -1.0, 0.0])
        (call(x) * 3).sum().backward()
        assert x.grad.tolist() == [3, 3, 0, 0]


def test_linear_layer_without_outputs():
    x, w = taeda.ones(3, 4, requires_grad=True), taeda.ones(0, 4, requires_grad=True)
    ops.linear(x, w).sum().backward()
    assert x.grad.tolist() == [[0.0] * 4] * 3
    assert tuple(w.grad.shape) == (0, 4)


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
@pytest.mark.parametrize(
    ("target", "index", "source"),
    [([4], [1], []), ([4], [], [3]), ([], [], [3]), ([], [1], []), ([2, 3], [0], [2, 3])],
    ids=str,
)
def test_scattering_between_numbers_vectors_and_nothing(name, target, index, source):
    places = taeda.zeros(index, dtype=taeda.int64)
    into, values = taeda.ones(target, dtype=taeda.float64), taeda.full(source, 2.0, dtype=taeda.float64)
    assert gradcheck(
        lambda a, b: getattr(taeda, name)(a, 0, places, b), (into.requires_grad_(), values.requires_grad_())
    )


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax"])
def test_reductions_of_nothing_scattered(reduce):
    nothing = taeda.zeros(0, 3, dtype=taeda.int64)
    a, b = float64([1.0, 2.0]), float64([3.0, 4.0])
    result = taeda.scatter_reduce(a, 0, nothing, b, reduce, include_self=False)
    (result * 5).sum().backward()
    assert a.grad.tolist() == [5, 5]
    assert b.grad.tolist() == [0, 0]


@pytest.mark.parametrize("size", [0, 1])
def test_windows_of_a_number_give_it_their_gradient(size):
    x = taeda.tensor(3.0, dtype=taeda.float64, requires_grad=True)
    (2 * x.unfold(0, size, 1)).sum().backward()
    assert x.grad.tolist() == 2.0 * size
