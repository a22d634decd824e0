"""saved_tensors_hooks and its relatives: what is packed, that gradients stay as they are, and who may use them."""

from __future__ import annotations

import threading
import weakref
from contextlib import nullcontext

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, grad, no_grad
from taeda_autograd.checkpoint import checkpoint
from taeda_autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)
from taeda_tensor_core import _C
from taeda_testing.settling import without_collector


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y * x

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return 3 * x * x * g


def in_place_on_a_view(x):
    y = x * 1
    y[1:].exp_()
    return y


PROGRAMS = {
    "argument": lambda x: x * x,
    "output": lambda x: x.exp(),
    "list": lambda x: taeda.cat([x, x.sin()]) ** 2,
    "function": Cube.apply,
    "matrix": lambda x: x.reshape(1, -1) @ x.reshape(-1, 1),
    "view": in_place_on_a_view,
    "number": lambda x: (x * 3) ** 3,
    "nothing saved": lambda x: x + x,
}


def derivatives(program, x, hooks) -> list:
    """First, second and third derivative, each recorded inside the hooks."""
    found = []
    with hooks:
        y = program(x).sum()
        for _ in range(3):
            if not y.requires_grad:
                break
            (g,) = grad(y, x, create_graph=True, allow_unused=True)
            if g is None:
                break
            found.append(g.tolist())
            y = (g * g).sum()
    return found


@pytest.fixture
def x():
    return taeda.tensor([0.5, -1.0, 2.0], dtype=taeda.float64, requires_grad=True)


def as_lists():
    return saved_tensors_hooks(
        lambda t: (t.tolist(), t.dtype, t.shape),
        lambda kept: taeda.tensor(kept[0], dtype=kept[1]).reshape(kept[2]),
    )


HOOKS = {
    "lists": as_lists,
    "same": lambda: saved_tensors_hooks(lambda t: t, lambda t: t),
    "cpu": save_on_cpu,
    "copies": allow_mutation_on_saved_tensors,
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("hooks", HOOKS)
def test_derivatives_of_all_orders_are_as_without(program, hooks, x):
    expected = derivatives(PROGRAMS[program], x, nullcontext())
    assert derivatives(PROGRAMS[program], x, HOOKS[hooks]()) == expected


def test_what_the_hooks_see(x):
    packed, unpacked = [], []

    def pack(t):
        assert not (t * 2).requires_grad
        packed.append(t.tolist())
        return len(packed) - 1

    def unpack(number):
        unpacked.append(number)
        return taeda.tensor(packed[number], dtype=taeda.float64)

    with saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
        z = x + 1
    assert z.requires_grad and packed == [x.tolist(), x.tolist(), (x * x).exp().tolist()]
    y.sum().backward()
    assert sorted(unpacked) == [0, 1, 2]
    assert taeda.allclose(x.grad, (2 * x * (x * x).exp()).detach())


def test_results_are_kept_for_those_gradients_alone_that_read_them(x):
    exponent = taeda.full_like(x, 3.0, requires_grad=True)
    number = taeda.full_like(x, 3.0)
    for base, power, count in (
        (x, 2, 1),
        (x, number, 2),
        (2.0, exponent, 2),
        (number, exponent, 3),
        (x, exponent, 3),
    ):
        seen = []
        with saved_tensors_hooks(lambda t, seen=seen: seen.append(t.shape) or t, lambda t: t):
            result = base**power
        assert seen.count(x.shape) == count
        leaves = [t for t in (base, power) if getattr(t, "requires_grad", False)]
        found = dict(zip(map(id, leaves), grad(result.sum(), leaves), strict=True))
        for leaf, expected in (
            (base, power * base ** (power - 1)),
            (power, result * taeda.as_tensor(base).log()),
        ):
            if id(leaf) in found:
                assert taeda.allclose(found[id(leaf)], expected.detach(), equal_nan=True)


def test_an_argument_comes_to_the_hook_as_it_is(x):
    class Kept(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * a

    inner = x * 1
    for use in (
        taeda.sin,
        lambda t: t * t,
        Kept.apply,
        lambda t: checkpoint(taeda.sin, t, use_reentrant=False),
    ):
        for argument in (x, inner):
            seen = []
            with saved_tensors_hooks(lambda t, seen=seen: seen.append(t) or t, lambda t: t):
                result = use(argument)
            assert seen and all(t is argument for t in seen)
            (found,) = grad(result.sum(), x, create_graph=True, retain_graph=True)
            (expected,) = grad(use(argument).sum(), x, create_graph=True, retain_graph=True)
            assert found.equal(expected)
            assert grad(found.sum(), x, retain_graph=True)[0].equal(
                grad(expected.sum(), x, retain_graph=True)[0]
            )


def test_a_hook_that_keeps_its_argument_keeps_no_graph_alive(x):
    leaves = [x.detach().requires_grad_() for _ in range(4)]
    uses = [taeda.sin, taeda.exp, lambda t: t.mul_(x), lambda t: t.clone().sin_()]
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        results = [use(leaf * 1) for use, leaf in zip(uses, leaves, strict=True)]
    watched = [weakref.ref(leaf) for leaf in leaves]
    with without_collector():
        del results, leaves
        assert [leaf() for leaf in watched] == [None] * 4


def test_the_innermost_hooks_count_and_end_with_their_block(x):
    seen = []
    outer = saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t)
    inner = saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t)
    with outer:
        x.exp()
        with inner:
            x.exp()
        x.exp()
        with pytest.raises(KeyError), inner:
            raise KeyError
        x.exp()
    x.exp()
    assert seen == ["outer", "inner", "outer", "outer"]


def test_other_threads_save_as_ever(x):
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert not seen


def test_nothing_is_packed_without_recording(x):
    seen = []
    with saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t), no_grad():
        x.exp()
    assert not seen


def test_wrong_hooks(x):
    with pytest.raises(TypeError, match="'pack_hook' must be callable, found int"):
        saved_tensors_hooks(3, print)
    with pytest.raises(TypeError, match="'unpack_hook' must be callable, found NoneType"):
        saved_tensors_hooks(print, None)
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack hook returned int, expected a Tensor"):
        y.sum().backward()
    with (
        saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook modified its argument"),
    ):
        x * x
    with saved_tensors_hooks(lambda t: 1 / 0, lambda t: t), pytest.raises(ZeroDivisionError):
        x * x
    assert (x * x).requires_grad


def test_disabled_hooks_say_why(x):
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), save_on_cpu():
            pass
        with disable_saved_tensors_hooks("nor there"):
            pass
        with pytest.raises(RuntimeError, match="not here"), save_on_cpu():
            pass
    with save_on_cpu():
        x.exp()
        with pytest.raises(RuntimeError, match="too late"), disable_saved_tensors_hooks("too late"):
            pass

    @disable_saved_tensors_hooks("in a function")
    def function():
        with save_on_cpu():
            pass

    with pytest.raises(RuntimeError, match="in a function"):
        function()


def test_saved_tensors_may_change_where_copies_are_kept(x):
    y = x.exp()
    z = (y * y).sum()
    y.mul_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        z = (y * y).sum()
        y.mul_(0)
    z.backward()
    assert taeda.allclose(x.grad, 2 * (2 * x.detach()).exp())
    with allow_mutation_on_saved_tensors(), pytest.raises(RuntimeError, match="cannot be nested"):
        allow_mutation_on_saved_tensors().__enter__()
    with allow_mutation_on_saved_tensors():
        pass


def test_increment_version_is_noticed(x):
    for changed in (lambda y: y, lambda y: [y, y.detach().clone()]):
        y = x * 1
        z = (y * y).sum()
        before = y._version
        increment_version(changed(y))
        assert y._version == before + 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_packed_goes_with_the_graph(program):
    def run() -> None:
        x = taeda.ones(1000, dtype=taeda.float64, requires_grad=True)
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = PROGRAMS[program](x).sum()
            y.backward(create_graph=True)
        del y
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            PROGRAMS[program](x)

    run()
    with without_collector():
        before = _C._live_bytes()
        run()
        assert _C._live_bytes() == before
