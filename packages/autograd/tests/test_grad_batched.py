"""Gradients for several weights at once, and memory shared with NumPy where nothing is recorded."""

import numpy as np
import pytest

import taeda


def test_rows_of_weights():
    x = taeda.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    (found,) = taeda.autograd.grad(y, x, taeda.eye(3), is_grads_batched=True, retain_graph=True)
    assert found.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    unused = taeda.ones(2, requires_grad=True)
    found, missing = taeda.autograd.grad(
        y, (x, unused), taeda.ones(2, 3), is_grads_batched=True, allow_unused=True
    )
    assert found.shape == (2, 3) and missing is None
    with pytest.raises(RuntimeError):  # the graph is gone
        taeda.autograd.grad(y, x, taeda.eye(3), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="first dimension"):
        taeda.autograd.grad(x.sum(), x, None, is_grads_batched=True)


def test_numpy_where_nothing_is_recorded():
    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    with taeda.no_grad():
        array = x.numpy()
        assert np.asarray(x).tolist() == [1, 1]
    array[0] = 5
    assert x.tolist() == [5, 1] and x.requires_grad
