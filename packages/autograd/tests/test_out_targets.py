"""Targets of out= and the graph: what is recorded can't be written to a tensor that is given."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd.gradcheck import gradcheck

CALLS = {
    "diag": lambda x, out: taeda.diag(x, out=out),
    "index_add": lambda x, out: taeda.index_add(x, 0, taeda.tensor([1]), x[:1], out=out),
    "kron": lambda x, out: taeda.kron(x, x, out=out),
    "scatter": lambda x, out: taeda.scatter(x, 0, taeda.tensor([[0, 1]]), x, reduce="add", out=out),
    "std": lambda x, out: taeda.std(x, 1, out=out),
    "zeros": lambda x, out: taeda.zeros(2, 2, out=out),
}


@pytest.mark.parametrize("name", CALLS)
def test_out_takes_no_part_in_the_graph(name):
    x, out = taeda.tensor([[1.0, 2.0], [3.0, 4.0]]), taeda.empty(0)
    expected = CALLS[name](x, out).clone()
    with pytest.raises(RuntimeError, match="grad"):
        CALLS[name](x, taeda.empty_like(expected).requires_grad_())
    if name != "zeros":
        with pytest.raises(RuntimeError, match="grad"):
            CALLS[name](x.clone().requires_grad_(), taeda.empty(0))
    with taeda.no_grad():
        target = taeda.empty_like(expected).requires_grad_()
        assert taeda.equal(CALLS[name](x.clone().requires_grad_(), target), expected)


def test_a_bag_leaves_out_the_row_that_is_counted_from_the_end():
    weight = taeda.ones(5, 2, requires_grad=True)
    factors = taeda.ones(3, requires_grad=True)
    indices, offsets = taeda.tensor([4, 1, 4]), taeda.tensor([0])
    bags = taeda.ops.embedding_bag(weight, indices, offsets, per_sample_weights=factors, padding_idx=-1)[0]
    bags.sum().backward()
    assert weight.grad.sum(1).tolist() == [0, 2, 0, 0, 0]
    assert factors.grad.tolist() == [0, 2, 0]


def test_running_sums_of_exponentials_of_complex_numbers_have_their_gradient():
    z = taeda.tensor([0.5 + 1j, -1 + 0.25j, 0.75 - 2j, 1j], dtype=taeda.complex128, requires_grad=True)
    assert gradcheck(lambda z: taeda.logcumsumexp(z, 0), (z,))
    assert gradcheck(lambda z: taeda.logsumexp(z, 0), (z,))


X = taeda.tensor([3.0, 1.0, 2.0], requires_grad=True)
WITHOUT_GRADIENT = {
    "gt": (lambda out: taeda.gt(X, 1.5, out=out), taeda.bool),
    "eq": (lambda out: taeda.eq(X, X, out=out), taeda.float32),
    "argmax": (lambda out: taeda.argmax(X, out=out), taeda.int64),
    "signbit": (lambda out: taeda.signbit(X, out=out), taeda.bool),
    "logical_and": (lambda out: taeda.logical_and(X, X, out=out), taeda.bool),
    "bucketize": (lambda out: taeda.bucketize(X, taeda.sort(X)[0], out=out), taeda.int64),
    "isin": (lambda out: taeda.isin(X, X[:2], out=out), taeda.bool),
    "matrix_rank": (lambda out: taeda.linalg.matrix_rank(X.diag(), out=out), taeda.int64),
    "multinomial": (lambda out: taeda.multinomial(X, 3, out=out).sort()[0], taeda.int64),
    "nonzero": (lambda out: taeda.nonzero(X, out=out), taeda.int64),
}


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_results_without_gradients_are_written_while_gradients_are_recorded(name):
    call, dtype = WITHOUT_GRADIENT[name]
    with taeda.no_grad():
        expected = call(taeda.empty(0, dtype=dtype))
    found = call(taeda.empty(0, dtype=dtype))
    assert not found.requires_grad and found.dtype == dtype and taeda.equal(found, expected)
    if dtype == taeda.float32:
        with pytest.raises(RuntimeError, match="grad"):
            call(taeda.empty(3).requires_grad_())


def test_of_several_targets_one_that_would_carry_a_gradient_refuses():
    with pytest.raises(RuntimeError, match=r"^sort\.out: .*recorded"):
        taeda.sort(X, out=(taeda.empty(0), taeda.empty(0, dtype=taeda.int64)))
