"""Many threads and one leaf: every gradient arrives once, whatever the size, and .grad may change meanwhile.

Sizes stand on both sides of every size at which an operator gives the interpreter's lock up.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, grad

THREADS = 8
ROUNDS = 5
SIZES = [1, 50, 9_000, 40_000, 400_000]


def together(work, threads: int = THREADS) -> list:
    """The results of work(0), work(1), ..., begun at the same moment."""
    gate = threading.Barrier(threads)

    def begin(number: int):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def leaf(size: int) -> taeda.Tensor:
    return taeda.zeros(size, requires_grad=True)


class Double(Function):
    """A Function of the user's: its backward is Python."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


LOSSES = {
    "sum": lambda w: w.sum(),
    "twice": lambda w: (w + w.flip(0)).sum() / 2,
    "view": lambda w: w.view(-1)[:].sum(),
    "function": lambda w: Double.apply(w).sum() / 2,
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_gradient_is_lost(size, create_graph, loss):
    w = leaf(size)

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            LOSSES[loss](w).backward(create_graph=create_graph)

    together(work)
    assert w.grad.detach().unique().tolist() == [THREADS * ROUNDS]


@pytest.mark.parametrize("size", SIZES)
def test_no_gradient_of_chosen_inputs_is_lost(size):
    w = leaf(size)
    together(lambda _: [w.sum().backward(inputs=[w]) for _ in range(ROUNDS)])
    assert w.grad.unique().tolist() == [THREADS * ROUNDS]


@pytest.mark.parametrize("size", SIZES)
def test_hooks_see_every_gradient(size):
    w, before, after = leaf(size), [], []
    w.register_hook(lambda g: before.append(1))
    w.register_post_accumulate_grad_hook(lambda x: after.append(1))
    together(lambda _: [w.sum().backward() for _ in range(ROUNDS)])
    assert len(before) == len(after) == THREADS * ROUNDS
    assert w.grad.unique().tolist() == [THREADS * ROUNDS]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_taken_away_are_the_ones_added(size, create_graph):
    """What one thread takes out of .grad and what remains is all that the others added."""
    w = leaf(size)
    taken, running = [], threading.Event()
    running.set()

    def take() -> None:
        while running.is_set():
            w.grad = None
            w.grad = taeda.zeros(size)
            if len(taken) < 20 and (grad := w.grad) is not None:
                taken.append(grad)  # read when nobody adds to it any more

    thief = threading.Thread(target=take)
    thief.start()
    together(lambda _: [w.sum().backward(create_graph=create_graph) for _ in range(ROUNDS)])
    running.clear()
    thief.join()
    w.grad = None
    w.sum().backward()
    assert w.grad.unique().tolist() == [1]
    assert all(0 <= float(grad.detach()[0]) <= THREADS * ROUNDS for grad in taken)


@pytest.mark.parametrize("size", SIZES)
def test_gradient_reset_while_others_add(size):
    w = leaf(size)

    def work(number: int) -> None:
        for _ in range(4 * ROUNDS):
            if number % 2:
                w.grad = None
            else:
                w.sum().backward()

    together(work)
    assert w.grad is None or float(w.grad.max()) <= THREADS * 2 * ROUNDS


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_retained_gradients_add_up(size, create_graph):
    w = leaf(size)
    y = w * 3
    y.retain_grad()
    together(
        lambda _: [y.sum().backward(create_graph=create_graph, retain_graph=True) for _ in range(ROUNDS)]
    )
    assert y.grad.detach().unique().tolist() == [THREADS * ROUNDS]
    assert w.grad.detach().unique().tolist() == [3 * THREADS * ROUNDS]


def test_tensors_that_retain_may_go_while_their_gradient_is_added():
    def work(_: int) -> None:
        for _ in range(4 * ROUNDS):
            y = shared[0]
            y.sum().backward(retain_graph=True)
            y = w * 3
            y.retain_grad()
            shared[0] = y

    w = leaf(40_000)
    shared = [w * 3]
    shared[0].retain_grad()
    together(work)
    assert w.grad.unique().tolist() == [3 * THREADS * 4 * ROUNDS]


@pytest.mark.parametrize("size", SIZES)
def test_one_graph_run_by_all(size):
    w = leaf(size)
    middle = (w * 2).exp()
    loss = (middle * middle).sum()
    expected = grad(loss, w, retain_graph=True)[0]
    found = together(lambda _: grad(loss, w, retain_graph=True)[0])
    assert all(bool((one == expected).all()) for one in found)
    together(lambda _: loss.backward(retain_graph=True))
    assert bool((w.grad == THREADS * expected).all())
