"""backward and grad: every argument, accumulation, higher orders, long and wide graphs, threads, nesting."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, backward, grad


def one(value: float = 1.0) -> taeda.Tensor:
    return taeda.tensor(value, dtype=taeda.float64).requires_grad_()


def test_gradients_add_up_over_uses_and_calls(make):
    x = make(3)
    y = x * 2 + x * x
    y.sum().backward()
    expected = 2 + 2 * x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), expected)
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    np.testing.assert_allclose(x.grad.numpy(), expected + 3)


def test_a_gradient_is_not_shared_with_the_one_given(make):
    x, g = make(3), taeda.ones(3, dtype=taeda.float64)
    (x + 0).backward(g)
    (x + 0).backward(g)
    assert g.tolist() == [1, 1, 1] and x.grad.tolist() == [2, 2, 2]


def test_backward_of_several_roots_with_gradients(make):
    x = make(2)
    backward([x * 2, (x * 3).sum()], [taeda.tensor([1.0, 10.0], dtype=taeda.float64), None])
    assert x.grad.tolist() == [5, 23]


def test_inputs_limit_what_is_computed(make):
    x, y = make(2), make(2)
    z = x * 2
    (z * y).sum().backward(inputs=[y])
    assert x.grad is None and y.grad.tolist() == z.tolist()
    (g,) = grad((z * y).sum(), z)
    assert g.tolist() == y.tolist() and x.grad is None


def test_unused_inputs(make):
    x, y = make(2), make(2)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad((x * 2).sum(), [x, y])
    assert grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    assert grad((x * 2).sum(), [x, y], materialize_grads=True)[1].tolist() == [0, 0]


def test_a_graph_is_kept_only_when_asked(make):
    x = make(2)
    y = (x * x).sum()
    grad(y, x, retain_graph=True)
    grad(y, x)
    with pytest.raises(RuntimeError, match=r"Mul.*retain_graph"):
        grad(y, x)
    z = (x + 2).sum()  # saves nothing
    grad(z, x)
    grad(z, x)


@pytest.mark.parametrize(
    ("function", "derivatives"),
    [
        (lambda x: x**5, [lambda v: 5 * v**4, lambda v: 20 * v**3, lambda v: 60 * v**2, lambda v: 120 * v]),
        (taeda.sin, [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin]),
        (lambda x: (x * 2).exp(), [lambda v, n=n: 2**n * np.exp(2 * v) for n in (1, 2, 3, 4)]),
        (lambda x: 1 / x, [lambda v: -(v**-2), lambda v: 2 * v**-3, lambda v: -6 * v**-4]),
    ],
)
def test_derivatives_of_higher_order(function, derivatives):
    x = one(0.7)
    y = function(x)
    for derivative in derivatives:
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(derivative(0.7), rel=1e-12)


def test_backward_with_create_graph_records_the_gradient(make):
    x = make(3)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = grad(x.grad.sum(), x)
    np.testing.assert_allclose(second.numpy(), 6 * x.detach().numpy())
    x.grad = None


def test_long_chain_and_its_end():
    x = one()
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    z = x
    for _ in range(100_000):
        z = z * 1
    del z  # a graph that never ran goes without recursion as well


def test_wide_graph():
    leaves = [one(i) for i in range(2000)]
    total = taeda.stack(leaves).sum()
    for leaf in leaves:
        total = total + leaf * 2
    total.backward()
    assert all(leaf.grad.item() == 3 for leaf in leaves)


def test_diamonds_are_walked_once():
    """2^60 paths, 60 nodes."""
    x = y = one()
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


def test_backward_inside_backward(make):
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with taeda.enable_grad():
                leaf = x.detach().requires_grad_()
                (leaf * leaf).sum().backward()
            return g * leaf.grad

    x = make(3)
    Inner.apply(x * 1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy())


def test_threads_add_into_one_leaf():
    x = taeda.ones(1000, requires_grad=True)
    errors = []

    def work():
        try:
            for _ in range(50):
                (x * 2).sum().backward()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert x.grad.tolist() == [400.0] * 1000


def test_threads_on_one_kept_graph():
    x = one(3)
    y = (x * x).exp()
    results = []

    def work():
        results.extend(grad(y, x, retain_graph=True)[0].item() for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200
    assert results == pytest.approx([6 * np.exp(9.0)] * 200, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: (x * 2).backward(), RuntimeError, "scalar"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "does not require grad"),
        (lambda x: (x * 2).backward(taeda.ones(4)), RuntimeError, r"\(4,\).*\(3,\)|\(3,\).*\(4,\)"),
        (lambda x: (x * 2).backward("one"), TypeError, "str"),
        (lambda x: grad((x * 2).sum(), "x"), TypeError, "str"),
        (lambda x: backward([x.sum()], [None, None]), RuntimeError, "1.*2"),
        (lambda x: grad((x * 2).sum(), x.detach()), RuntimeError, "require"),
        (lambda x: (x.sum() * 1j).backward(), RuntimeError, "complex|real"),
    ],
)
def test_wrong_calls_change_nothing(call, error, words, make):
    x = make(3)
    with pytest.raises(error, match=words):
        call(x)
    assert x.grad is None and (x * 1).requires_grad


def test_leaves_and_their_place():
    x = one()
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and not y.is_leaf
    assert y.grad_fn.name() == "MulBackward0"
    (edge, *_) = y.grad_fn.next_functions
    assert edge[0].name() == "AccumulateGrad" and edge[0].variable is x
    assert y.detach().is_leaf and not y.detach().requires_grad
