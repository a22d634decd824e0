"""Graphs free their memory by counting alone: live bytes return to the start while the cycle collector is off."""

from __future__ import annotations

import functools
import operator
import random
import weakref

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import _C as _autograd
from taeda_autograd import Function, GradcheckError, grad, gradcheck
from taeda_tensor_core import _C
from taeda_testing.settling import without_collector

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


class Own(taeda.Tensor):
    """A subclass: its Python objects have state and outlive their last reference where the graph holds them."""


def with_attribute():
    x = leaf()
    x.note = "text"
    return x


def with_weak_reference():
    x = leaf()
    x.watcher = weakref.ref(x)
    return x


def with_hook():
    x = leaf()
    x.register_hook(lambda g: g * 2)
    return x


LEAVES = {
    "plain": leaf,
    "subclass": lambda: taeda.Tensor._make_subclass(Own, leaf().detach(), True),
    "attribute": with_attribute,
    "weak reference": with_weak_reference,
    "hook": with_hook,
}


def squared(x, w):
    (x * w).exp().sum().backward(create_graph=True)


def through_function(x, w):
    Square.apply(x * w).sum().backward(create_graph=True)


def in_place_on_views(x, w):
    y = x * w
    y[::2].exp_()
    y.sum().backward(create_graph=True)


def twice(x, w):
    squared(x, w)
    squared(x, w)


def first_then_second(x, w):
    squared(x, w)
    (x.grad * w.grad).sum().backward(create_graph=True)


def with_retained(x, w):
    y = x * w
    y.retain_grad()
    y.exp().sum().backward(create_graph=True)


def with_node_hooks(x, w):
    y = (x * w).exp()
    y.grad_fn.register_hook(lambda i, o: None)
    y.grad_fn.register_prehook(lambda g: None)
    y.sum().backward(create_graph=True)


RINGS = [
    squared,
    through_function,
    in_place_on_views,
    twice,
    first_then_second,
    with_retained,
    with_node_hooks,
]


def drop_in_turn(x, w):
    del x
    del w


def take_gradient_off(x, w):
    del x
    w.grad = None


def cut_gradient_off(x, w):
    del x
    w.grad.detach_()


def keep_a_view(x, w):
    view = x.view(2, -1)
    del x
    w.grad = None
    del view


def keep_a_gradient(x, w):
    g = x.grad
    del x, w
    del g


def keep_another_result(x, w):
    other = (x * 3).exp()
    w.grad = None
    del x
    del other


def keep_a_node(x, w):
    node = (x * 3).grad_fn
    w.grad = None
    del x
    del node


ENDS = [drop_in_turn, take_gradient_off, cut_gradient_off, keep_a_view, keep_a_gradient, keep_another_result,
        keep_a_node]  # fmt: skip


def bytes_kept(program) -> int:
    """Bytes that three runs of `program` leave behind, with the cycle collector off."""
    program()  # whatever is made once and kept
    with without_collector():
        before = _C._live_bytes()
        for _ in range(3):
            program()
        return _C._live_bytes() - before


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("ring", RINGS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("end", ENDS, ids=lambda f: f.__name__)
def test_rings_through_gradients_fall_apart(kind, ring, end):
    def program():
        leaves = [LEAVES[kind](), LEAVES["plain"]()]
        ring(*leaves)
        end(leaves.pop(0), leaves.pop())

    assert bytes_kept(program) == 0


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("ring", RINGS, ids=lambda f: f.__name__)
def test_steps_with_a_lasting_parameter_keep_nothing(kind, ring):
    w = LEAVES[kind]()

    def step():
        ring(leaf(), w)
        w.grad = None

    assert bytes_kept(step) == 0


@pytest.mark.parametrize("order", ["first", "last", "random"])
def test_searches_for_rings_grow_with_their_number(order):
    """The product of n leaves: dropping them all looks at about n log(n) objects, in whatever order."""

    def looked_at(n: int) -> int:
        leaves = [taeda.tensor(1.0 + i / n, requires_grad=True) for i in range(n)]
        functools.reduce(operator.mul, leaves).backward(create_graph=True)
        if order == "random":
            random.Random(n).shuffle(leaves)
        before = _autograd.searched_objects()
        while leaves:
            leaves.pop(0 if order == "first" else -1)
        return _autograd.searched_objects() - before

    with without_collector():
        live = _C._live_bytes()
        small, large = (min(looked_at(n) for _ in range(5)) for n in (250, 1000))
        assert large < 4 * 4 * small
        assert large < 1000 * 200
        assert _C._live_bytes() == live


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
    assert bytes_kept(program) == 0


def test_a_leaf_that_lives_keeps_no_graph():
    x = leaf()
    assert bytes_kept(lambda: (x.exp() * x).sum()) == 0


@pytest.mark.parametrize("length", [49, 51, 150, 200_000])
def test_a_chain_of_gradients_of_gradients_goes_whole(length):
    def chain():
        last = taeda.zeros(1)
        for _ in range(length):
            tensor = taeda.zeros(1)
            tensor.grad = last
            last = tensor

    assert bytes_kept(chain) == 0
