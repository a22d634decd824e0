"""Threads that meet in the library's own bookkeeping, with and without the interpreter's lock (Note [Turns])."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import taeda as t


def _ones() -> t.Tensor:
    return t.ones(3, requires_grad=True)


def _in_forward(wait: Callable[[], None]) -> None:
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: t.Tensor) -> t.Tensor:
            wait()
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: t.Tensor) -> t.Tensor:
            return grad * 2

    Double.apply(_ones())


def _in_backward(wait: Callable[[], None]) -> None:
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: t.Tensor) -> t.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: t.Tensor) -> t.Tensor:
            wait()
            return grad * 2

    Double.apply(_ones()).sum().backward()


def _in_hook(wait: Callable[[], None]) -> None:
    x = _ones()
    x.register_hook(lambda grad: wait())
    (x * 2).sum().backward()


def _in_node_hooks(wait: Callable[[], None]) -> None:
    y = _ones() * 2
    y.grad_fn.register_hook(lambda inputs, outputs: wait())
    y.sum().backward()


def _in_hook_of_a_leaf(wait: Callable[[], None]) -> None:
    x = _ones()
    x.register_post_accumulate_grad_hook(lambda leaf: wait())
    (x * 2).sum().backward()


def _in_packing(wait: Callable[[], None]) -> None:
    def pack(x: t.Tensor) -> t.Tensor:
        wait()
        return x

    with t.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        _ones().exp()


def _in_unpacking(wait: Callable[[], None]) -> None:
    def unpack(x: t.Tensor) -> t.Tensor:
        wait()
        return x

    with t.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = _ones().exp()
    y.sum().backward()


def _in_a_class(wait: Callable[[], None]) -> None:
    class Waits(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            wait()
            return 1

    t.add(t.ones(3).as_subclass(Waits), 1)


def _in_an_operator(wait: Callable[[], None]) -> None:
    with t.library._scoped_library("turns", "DEF") as lib:
        lib.define("waits(Tensor x) -> Tensor")

        def kernel(x: t.Tensor) -> t.Tensor:
            wait()
            return x.clone()

        lib.impl("waits", kernel, "CPU")
        t.ops.turns.waits(t.ones(3))


CALLBACKS = [
    _in_forward,
    _in_backward,
    _in_hook,
    _in_node_hooks,
    _in_hook_of_a_leaf,
    _in_packing,
    _in_unpacking,
    _in_a_class,
    _in_an_operator,
]


@pytest.mark.parametrize("program", CALLBACKS, ids=lambda program: program.__name__[1:])
def test_a_callback_may_wait_for_tensors_of_another_thread(program):
    begun, done, seen = threading.Event(), [], []

    def other() -> None:
        begun.wait(60)
        x = _ones()
        (x * 3).sum().backward()
        done.append(x.grad.tolist())

    def wait() -> None:
        begun.set()
        limit = time.monotonic() + 60
        while not done and time.monotonic() < limit:  # without a call that gives a lock up
            pass
        seen.append(len(done))

    thread = threading.Thread(target=other)
    thread.start()
    program(wait)
    thread.join(60)
    assert seen[0] == 1
    assert done == [[3.0] * 3]


def _together(count: int, work: Callable[[int], None]) -> None:
    start = threading.Barrier(count)

    def begin(number: int) -> None:
        start.wait(60)
        work(number)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(begin, range(count)))


def test_a_gradient_taken_up_while_another_thread_lets_go_of_it_keeps_what_was_said_of_it():
    x = _ones()
    (x * 2).sum().backward()
    x.grad.note = "kept"
    lost = []

    def look(_: int) -> None:
        for _ in range(3000):
            grad = x.grad
            if grad.note != "kept" or grad.tolist() != [2.0] * 3:
                lost.append(grad)
            del grad

    _together(4, look)
    assert not lost


def test_one_tensor_has_one_object_whoever_asks():
    y = _ones() * 2
    y.retain_grad()
    y.sum().backward()
    different = []

    def look(_: int) -> None:
        for _ in range(3000):
            first, second = y.grad, y.grad
            node, again = y.grad_fn, y.grad_fn
            if first is not second or node is not again:
                different.append((first, second))

    _together(4, look)
    assert not different


def test_weak_references_and_subclasses_beside_threads_that_end_them():
    class Named(t.Tensor):
        pass

    died = []

    def make(number: int) -> None:
        for _ in range(500):
            x = t.ones(2).as_subclass(Named)
            x.number = number
            reference = weakref.ref(x, lambda _: died.append(1))
            kept = [x + 1, x[0], x.detach()]
            found = reference()
            assert found is x
            assert all(type(item) is Named for item in kept)
            del x, found, kept
            assert reference() is None

    _together(4, make)
    gc.collect()
    assert len(died) == 2000


def test_hooks_come_and_go_beside_backward():
    weight = t.ones(3, requires_grad=True)
    calls = []

    def add(_: int) -> None:
        for _ in range(300):
            handle = weight.register_hook(lambda grad: calls.append(1))
            (weight * 2).sum().backward()
            handle.remove()

    _together(4, add)
    assert weight.grad.tolist() == [2.0 * 1200] * 3
    assert len(calls) >= 1200
    before = len(calls)
    (weight * 2).sum().backward()
    assert len(calls) == before
