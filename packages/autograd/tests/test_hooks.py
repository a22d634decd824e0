"""Hooks on tensors, leaves and nodes: when they run, what they may change, how they are removed."""

from __future__ import annotations

import copy

import pytest

import taeda_tensor_core as taeda


def test_a_tensor_hook_sees_and_replaces_the_gradient(make):
    x = make(2)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1, 1], [10, 10]] and x.grad.tolist() == [30, 30]


def test_a_hook_sees_the_whole_sum_of_gradients(make):
    x = make(2)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2 + y * 5).sum().backward()
    assert seen == [[7, 7]]


def test_leaf_hooks_run_before_accumulation_once_per_backward(make):
    x = make(2)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    (x * 3 + x).sum().backward()
    (x * 3).sum().backward()
    assert seen == [[4, 4], [3, 3]] and x.grad.tolist() == [14, 14]


def test_post_accumulate_hooks_see_the_leaf(make):
    x = make(2)
    seen = []

    def step(leaf):
        seen.append((leaf is x, leaf.grad.tolist()))
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    assert seen == [(True, [3, 3])] and x.grad is None
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="leaves"):
        (x * 2).register_post_accumulate_grad_hook(step)


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


def test_handles_remove_once_and_work_as_scopes(make):
    x = make(2)
    with x.register_hook(lambda g: g * 5):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [6, 6]
    handle = x.register_hook(lambda g: g * 5)
    handle.remove()
    handle.remove()


def test_retain_grad(make):
    x = make(2)
    y = x * 3
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y * y).sum().backward()
    assert y.retains_grad
    assert y.grad.tolist() == [4 * v for v in y.tolist()]
    with pytest.raises(RuntimeError, match="retain_grad"):
        taeda.ones(2).retain_grad()


def test_retain_grad_follows_an_in_place_change(make):
    x = make(2)
    y = x * 3
    y.retain_grad()
    y.mul_(2)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5, 5] and x.grad.tolist() == [30, 30]


@pytest.mark.parametrize(
    ("hook", "error", "words"),
    [
        (lambda g: g[:1], RuntimeError, r"\(1,\)"),
        (lambda g: "text", TypeError, "str"),
        (lambda g: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_errors_of_hooks_leave_everything_as_it_was(hook, error, words, make):
    x = make(2)
    y = x * 3
    y.register_hook(hook)
    z = (y * y).sum()
    with pytest.raises(error, match=words):
        z.backward(retain_graph=True)
    assert x.grad is None and (x * 1).requires_grad


def test_hooks_may_run_recorded_programs(make):
    x = make(2)
    other = make(2)
    y = x * 3

    def hook(g):
        assert not (other * 1).requires_grad  # as the formulas, hooks are recorded only with create_graph
        with taeda.enable_grad():
            (other * g).sum().backward()

    y.register_hook(hook)
    y.sum().backward()
    assert other.grad.tolist() == [1, 1] and x.grad.tolist() == [3, 3]


def test_hooks_are_refused_where_nothing_flows(make):
    with pytest.raises(RuntimeError, match=r"register_hook.*require"):
        taeda.ones(2).register_hook(lambda g: g)
    with pytest.raises(TypeError, match=r"hook.*int"):
        make(2).register_hook(3)


def test_a_copied_leaf_has_no_hooks_of_the_original(make):
    x = make(2)
    x.register_hook(lambda g: g * 100)
    y = copy.deepcopy(x)
    (y * 1).sum().backward()
    assert y.grad.tolist() == [1, 1]
