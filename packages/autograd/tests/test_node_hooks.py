"""Hooks of graph nodes, the order among all kinds of hooks, and retained gradients of inner tensors."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import grad
from taeda_autograd.graph import get_gradient_edge


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


def test_node_hooks(make):
    x = make(2)
    y = x * 3
    order = []
    node = y.grad_fn
    node.register_prehook(lambda grads: order.append("pre") or (grads[0] * 2,))
    node.register_hook(
        lambda results, grads: order.append(grads[0].tolist()) or (results[0] + 1, *results[1:])
    )
    y.register_hook(lambda g: order.append("tensor"))
    y.sum().backward()
    assert order == ["tensor", "pre", [2, 2]] and x.grad.tolist() == [7, 7]


def test_order_of_all_kinds(x):
    calls = []
    y = x * 2
    x.register_hook(lambda g: calls.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: calls.append("after"))
    y.register_hook(lambda g: calls.append("tensor"))
    y.grad_fn.register_prehook(lambda g: calls.append("pre"))
    y.grad_fn.register_hook(lambda i, o: calls.append("post"))
    y.sum().backward()
    assert calls == ["tensor", "pre", "post", "leaf", "after"]


def test_node_hook_sees_both_sides_and_changes_what_goes_out(x):
    seen = []
    other = taeda.tensor([5.0, 7.0], requires_grad=True)
    y = x * other

    def hook(going, coming):
        seen.append(([g.tolist() for g in going], [g.tolist() for g in coming]))
        return going[0] * 10, going[1]

    handle = y.grad_fn.register_hook(hook)
    y.sum().backward()
    assert seen == [([[5, 7], [1, 2]], [[1, 1]])]
    assert x.grad.tolist() == [50, 70] and other.grad.tolist() == [1, 2]
    handle.remove()


def test_node_hook_with_the_wrong_number_of_gradients_is_an_error(x):
    y = x * x
    y.grad_fn.register_hook(lambda going, coming: (going[0],))
    with pytest.raises(RuntimeError, match=r"register_hook.*1 gradients, expected 2"):
        y.sum().backward()
    assert x.grad is None


def test_retain_grad(x):
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [4, 8]
    (y * y).sum().backward()
    assert y.grad.tolist() == [8, 16]


def test_retain_grad_sees_what_hooks_made(x):
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    assert y.grad.tolist() == [3, 3]


def test_retain_grad_follows_in_place_writes(x):
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 7).sum().backward()
    assert y.grad.tolist() == [7, 7] and x.grad.tolist() == [70, 70]


def test_retain_grad_of_leaf_changes_nothing_and_of_constant_is_an_error(x):
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="retain_grad"):
        taeda.zeros(2).retain_grad()


def test_leaves_with_hooks_are_reached_before_nodes_that_were_made_earlier():
    x, w = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True)
    shared = taeda.ones(2, requires_grad=True)
    first = x * shared
    last = (first * shared + w) * 2
    seen = []
    for name, tensor in {"x": x, "w": w, "shared": shared, "first": first}.items():
        tensor.register_hook(lambda grad, name=name: seen.append(name))
    w.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "grad", None))
    last.sum().backward()
    assert seen == ["w", "first", "x", "shared"]
    assert w.grad is None and shared.grad.tolist() == [4.0, 4.0] and x.grad.tolist() == [2.0, 2.0]


def test_gradients_of_leaves_can_be_used_and_dropped_one_by_one():
    weights = [taeda.ones(3, requires_grad=True) for _ in range(50)]
    most = []

    def use(leaf):
        most.append(sum(w.grad is not None for w in weights))
        leaf.grad = None

    for weight in weights:
        weight.register_post_accumulate_grad_hook(use)
    x = taeda.ones(3)
    for weight in weights:
        x = x * weight
    x.sum().backward()
    assert most == [1] * 50


def test_what_grad_asks_for_is_taken_before_the_hooks_of_its_node():
    x = taeda.ones(2, requires_grad=True)
    seen = []
    y = x * 2
    nodes = {"leaf": get_gradient_edge(x).node, "y": y.grad_fn}
    for name, node in nodes.items():
        node.register_prehook(lambda grads, name=name: seen.append(name))
    total = y.sum()
    grad(total, y, retain_graph=True)
    assert seen == []
    grad(total, x, retain_graph=True)
    assert seen == ["y"]
    total.backward()
    assert seen == ["y", "y", "leaf"]


def test_hooks_keep_size_and_kind_of_gradients(x):
    for wrong in (lambda g: g.long(), lambda g: g[..., :1], lambda g: g.sum()):
        y = x * 2
        handle = y.register_hook(wrong)
        with pytest.raises(RuntimeError, match="tensor hook"):
            y.sum().backward()
        handle.remove()


def test_hooks_of_the_nodes_of_chosen_inputs_are_called():
    x, other = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True)
    seen = []
    leaf = get_gradient_edge(x).node
    leaf.register_prehook(lambda grads: seen.append("pre") or (grads[0] * 10,))
    leaf.register_hook(lambda results, grads: seen.append("post"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    total = (x * other).sum()
    total.backward(inputs=[x, x], retain_graph=True)
    assert seen == ["pre", [10.0, 10.0], "post"]
    assert x.grad.tolist() == [10, 10] and other.grad is None
    assert grad(total, x)[0].tolist() == [1, 1] and len(seen) == 3

    y = x * 2
    y.grad_fn.register_prehook(lambda grads: seen.append("inner pre"))
    y.grad_fn.register_hook(lambda results, grads: seen.append("inner post"))
    (y * 3).sum().backward(inputs=[y])
    assert seen[3:] == ["inner pre", "inner post"]
    assert y.grad.tolist() == [3, 3] and x.grad.tolist() == [10, 10]
