"""Graphs free their memory by counting alone: live bytes return to the start while the cycle collector is off."""

from __future__ import annotations

import gc

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, GradcheckError, grad, gradcheck
from taeda_tensor_core import _C

SIZE = 4096


class Square(Function):
    """Saves input and output, and keeps both on ctx too."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        ctx.x, ctx.y = x, y
        return y

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return 2 * x * g


class Fails(Square):
    @staticmethod
    def backward(ctx, g):
        raise ArithmeticError


def leaf():
    return taeda.ones(SIZE, dtype=taeda.float64, requires_grad=True)


def plain_backward():
    leaf().exp().sum().backward()


def graph_without_backward():
    (leaf().exp() * 2).sum()


def retained_graph():
    x = leaf()
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)


def create_graph_by_grad():
    x = leaf()
    (g,) = grad(x.exp().sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x, create_graph=True)
    h.sum().backward()


def create_graph_by_backward():
    x = leaf()
    (x * x.exp()).sum().backward(create_graph=True)


def create_graph_by_backward_of_two_leaves():
    x, w = leaf(), leaf()
    (x * w).exp().sum().backward(create_graph=True)
    (x.grad * w.grad).sum().backward(create_graph=True)


def function_of_the_user():
    x = leaf()
    y = Square.apply(x)
    y.sum().backward()


def function_without_backward():
    Square.apply(leaf() * 1)


def second_derivative_of_a_function():
    x = leaf()
    (g,) = grad(Square.apply(x).sum(), x, create_graph=True)
    g.sum().backward()


def failing_function():
    x = leaf()
    with pytest.raises(ArithmeticError):
        Fails.apply(x).sum().backward()


def hooks_of_all_kinds():
    x = leaf()
    y = x * 2
    x.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: None)
    y.grad_fn.register_hook(lambda i, o: None)
    y.grad_fn.register_prehook(lambda g: None)
    x.register_post_accumulate_grad_hook(lambda t: None)
    y.retain_grad()
    y.sum().backward()


def failing_hook():
    def fail(g):
        raise ArithmeticError

    x = leaf()
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(ArithmeticError):
        y.exp().sum().backward()


def writes_through_views():
    x = leaf()
    y = x * 1
    y[: SIZE // 2].mul_(2)
    y.view(2, -1)[1].exp_()
    y.sum().backward()


def stale_version():
    x = leaf()
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="version"):
        y.sum().backward()


def nodes_held_by_the_user():
    x = leaf()
    y = x.exp() * x
    nodes = [y.grad_fn, y.grad_fn.next_functions[0][0], y.grad_fn.next_functions[1][0]]
    nodes[0].metadata["note"] = "text"
    del y, x
    assert nodes[2].variable.requires_grad


def checks():
    x = taeda.ones(3, dtype=taeda.float64, requires_grad=True)
    gradcheck(lambda t: t.exp(), x)
    with pytest.raises(GradcheckError):
        gradcheck(lambda t: t * t.detach(), x)


PROGRAMS = [
    plain_backward, graph_without_backward, retained_graph, create_graph_by_grad, create_graph_by_backward,
    create_graph_by_backward_of_two_leaves, function_of_the_user, function_without_backward,
    second_derivative_of_a_function, failing_function, hooks_of_all_kinds, failing_hook, writes_through_views,
    stale_version, nodes_held_by_the_user, checks,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_live_bytes_return_to_the_start(program):
    program()  # whatever is made once and kept
    gc.collect()
    gc.disable()
    try:
        before = _C._live_bytes()
        for _ in range(3):
            program()
        assert _C._live_bytes() == before
    finally:
        gc.enable()


def test_a_leaf_that_lives_keeps_no_graph():
    x = leaf()
    before = _C._live_bytes()
    for _ in range(3):
        (x.exp() * x).sum()
    assert _C._live_bytes() == before
