"""Arguments that formulas read later and that may be overwritten before: losses, quotients of numbers, attention."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad, no_grad
from taeda_autograd.graph import saved_tensors_hooks

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -4.0]])
T = np.array([[1.0, -2.0, 1.5], [2.0, 0.5, -5.0]])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


CLASSES = np.array([2, 0])
#: Functions of a matrix and their gradients.
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "absolute": (lambda x: taeda.ops.l1_loss(x, taeda.tensor(T), 2), lambda x: np.sign(x - T)),
    "targets": (lambda x: taeda.ops.l1_loss(taeda.tensor(T), x, 2), lambda x: np.sign(x - T)),
    "scores": (
        lambda x: taeda.ops.cross_entropy_loss(x, taeda.tensor(CLASSES), None, 2),
        lambda x: softmax(x) - np.eye(3)[CLASSES],
    ),
    "quotient": (lambda x: (3 / x).sum(), lambda x: -3 / x**2),
    "normal": (lambda x: taeda.special.ndtr(x).sum(), lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),
    "angle": (lambda x: taeda.real(taeda.polar(taeda.ones_like(x), x)).sum(), lambda x: -np.sin(x)),
}
#: Ways to overwrite what is saved.
WRITES: dict[str, Any] = {
    "in place": lambda x: x.mul_(2),
    "one value": lambda x: x.zero_(),
    "a view": lambda x: x[0].fill_(7),
    "twice": lambda x: (x.add_(1), x.add_(1)),
    "its alias": lambda x: x.detach().neg_(),
    "an item": lambda x: x.__setitem__((0, 0), 5.0),
    "out": lambda x: taeda.add(taeda.ones(2, 3, dtype=taeda.float64), 1, out=x.detach()),
    "copy": lambda x: x.copy_(taeda.zeros(2, 3)),
    "random": lambda x: x.uniform_(),
    "index": lambda x: x.index_fill_(0, taeda.tensor([0]), 9.0),
    "many": lambda x: taeda._foreach_add_([x], 1.0),
}


def leaf() -> Any:
    return taeda.tensor(X).requires_grad_()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_those_of_the_values_that_were_read(function: str, write: str) -> None:
    compute, derivative = FUNCTIONS[function]
    x = leaf()
    inner = x.clone()
    made = compute(inner)
    with no_grad():
        WRITES[write](inner)
    (found,) = grad(made, x)
    np.testing.assert_allclose(found.numpy(), derivative(X), rtol=1e-6)


SEVERAL: dict[str, tuple[Any, list[tuple[int, ...]], list[int]]] = {
    "instance_norm": (lambda x, w, b: taeda.ops.instance_norm(x, w, b, None, None, True), [(2, 3, 4), (3,), (3,)], [1]),
    "instance_norm by statistics": (
        lambda x, w, b: taeda.ops.instance_norm(
            x, w, b, taeda.zeros(3, dtype=x.dtype), taeda.ones(3, dtype=x.dtype), False
        ),
        [(2, 3, 4), (3,), (3,)],
        [1],
    ),
    "attention with a mask that is learnt": (
        lambda q, k, v, mask: taeda.ops.scaled_dot_product_attention(q, k, v, mask, scale=-0.3),
        [(1, 2, 5, 4)] * 3 + [(5, 5)],
        [0, 1, 3],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_gradients_do_not_change_with_what_is_overwritten(name: str) -> None:
    function, shapes, overwritten = SEVERAL[name]
    random = np.random.default_rng(0)
    leaves = [taeda.tensor(random.standard_normal(shape)).requires_grad_() for shape in shapes]
    expected = grad((function(*leaves) ** 2).sum(), leaves)
    for place in overwritten:
        inner = [leaf.clone() for leaf in leaves]
        made = function(*inner)
        with no_grad():
            inner[place].mul_(2)
        for a, b in zip(grad((made**2).sum(), leaves), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_second_derivatives_and_a_second_backward_see_the_old_values_too() -> None:
    x = leaf()
    inner = x.clone()
    made = (1 / inner).sum()
    with no_grad():
        inner.zero_()
    (first,) = grad(made, x, create_graph=True)
    (second,) = grad(first.sum(), x)
    np.testing.assert_allclose(first.detach().numpy(), -1 / X**2)
    np.testing.assert_allclose(second.numpy(), 2 / X**3)
    (again,) = grad(made, x)
    np.testing.assert_allclose(again.numpy(), -1 / X**2)


def test_each_of_several_graphs_keeps_what_it_read() -> None:
    x = leaf()
    inner = x.clone()
    before = [(n / inner).sum() for n in (1, 2)]
    (kept,) = grad(before.pop(0), x)  # whose node is gone when the value is overwritten
    with no_grad():
        inner.mul_(2)
    after = (4 / inner).sum()
    with no_grad():
        inner.mul_(3)
    np.testing.assert_allclose(kept.numpy(), -1 / X**2)
    np.testing.assert_allclose(grad(before[0], x)[0].numpy(), -2 / X**2)
    np.testing.assert_allclose(grad(after, x)[0].numpy(), -4 / (2 * X) ** 2)


def test_recorded_writes_belong_to_the_new_value() -> None:
    x = leaf()
    inner = x.clone()
    made = (1 / inner).sum()
    inner.mul_(2)
    (found,) = grad(made + inner.sum(), x)
    np.testing.assert_allclose(found.numpy(), -1 / X**2 + 2)


def test_lent_memory_is_written_by_its_owner_and_read_only_memory_by_nobody() -> None:
    array = X.copy()
    lent = taeda.from_numpy(array)
    weight = leaf()
    made = taeda.ops.l1_loss(weight, lent, 2)
    assert lent.numpy().flags.writeable and np.asarray(memoryview(lent.numpy())).flags.writeable
    lent.zero_()
    assert not array.any()
    np.testing.assert_allclose(grad(made, weight)[0].numpy(), np.sign(X - X))
    array = X.copy()
    array.flags.writeable = False
    fixed = taeda.from_numpy(array)
    made = taeda.ops.l1_loss(weight, fixed, 2)
    with pytest.raises(RuntimeError, match="read-only memory"):
        fixed.zero_()
    assert not fixed.numpy().flags.writeable
    grad(made, weight)
    with pytest.raises(RuntimeError, match="read-only memory"):
        fixed.zero_()


def test_hooks_that_pack_are_given_lent_arguments_as_others() -> None:
    packed: list[Any] = []
    x = leaf()
    inner = x.clone()

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.clone()

    with saved_tensors_hooks(pack, lambda t: t):
        made = (1 / inner).sum()
    with no_grad():
        inner.zero_()
    np.testing.assert_allclose(grad(made, x)[0].numpy(), -1 / X**2)
    assert any(t is inner for t in packed)


def test_other_arguments_are_refused_as_before() -> None:
    x = leaf()
    inner = x.clone()
    made = (taeda.tensor(T) / inner).sum()
    with no_grad():
        inner.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(made, x)


def test_threads_lend_and_write_at_once() -> None:
    shared = taeda.ones(64, dtype=taeda.float64)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(300):
                weight = taeda.ones(64, dtype=taeda.float64).requires_grad_()
                (found,) = grad(taeda.ops.l1_loss(weight, shared, 2), weight)
                assert found.shape == (64,)
        except BaseException as error:
            failures.append(error)

    def write() -> None:
        try:
            for _ in range(300):
                shared.add_(1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=f) for f in (read, write, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What was read between the question and the write is refused.
    assert not [f for f in failures if "modified by an inplace operation" not in str(f)]
