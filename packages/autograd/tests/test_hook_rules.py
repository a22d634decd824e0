"""Hooks of tensors, leaves and graph nodes: what they see, what they change, their order and their errors."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import backward, grad


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


def test_tensor_hook_sees_and_replaces_the_gradient(x):
    seen = []
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    (y * 2).sum().backward()
    assert seen == [[2, 2]]
    assert x.grad.tolist() == [60, 60]


def test_leaf_hook_runs_once_on_the_whole_gradient(x):
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3 + x).sum().backward()
    assert seen == [[6, 6]] and x.grad.tolist() == [6, 6]


def test_hooks_run_in_order_and_each_sees_the_result_of_the_one_before(x):
    seen = []
    for factor in (2, 3, 5):
        x.register_hook(lambda g, f=factor: (seen.append(g[0].item()), g * f)[1])
    x.sum().backward()
    assert seen == [1, 2, 6] and x.grad.tolist() == [30, 30]


def test_removed_hooks_do_not_run(x):
    calls = []
    y = x * 1
    handles = [t.register_hook(lambda g, n=n: calls.append(n)) for n, t in enumerate((x, y, x))]
    handles[0].remove()
    handles[0].remove()
    with handles[1]:
        pass
    y.sum().backward()
    assert calls == [2]


def test_hook_may_remove_itself_while_it_runs(x):
    calls = []

    def once(g):
        calls.append(1)
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: calls.append(2))
    x.sum().backward()
    x.sum().backward()
    assert calls == [1, 2, 2]


def test_post_accumulate_hook_sees_the_sum(x):
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf is x, leaf.grad.tolist())))
    x.sum().backward()
    (2 * x).sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [(True, [1, 1]), (True, [3, 3])]


def test_post_accumulate_hook_may_clear_the_gradient(x):
    def step(leaf):
        leaf.grad = None

    x.register_post_accumulate_grad_hook(step)
    x.sum().backward()
    assert x.grad is None


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


def test_node_prehook_changes_what_comes_in(x):
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.sum().backward()
    assert x.grad.tolist() == [6, 6]


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


def test_hooks_need_a_tensor_with_gradient_and_a_callable(x):
    with pytest.raises(RuntimeError, match="register_hook"):
        taeda.zeros(2).register_hook(print)
    with pytest.raises(TypeError, match="hook"):
        x.register_hook(3)
    with pytest.raises(TypeError, match="hook"):
        x.register_post_accumulate_grad_hook(3)
    with pytest.raises(TypeError, match="hook"):
        (x * 1).grad_fn.register_hook(3)
    with pytest.raises(TypeError, match="hook"):
        (x * 1).grad_fn.register_prehook(3)
    with pytest.raises(RuntimeError, match="register_post_accumulate_grad_hook"):
        (x * 1).register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize("place", ["tensor", "leaf", "pre", "post", "after"])
def test_error_inside_a_hook_arrives_and_leaves_the_engine_intact(x, place):
    class Stop(Exception):
        pass

    def fail(*_):
        raise Stop(place)

    y = x * 2
    z = y + 1
    handle = {
        "tensor": lambda: y.register_hook(fail),
        "leaf": lambda: x.register_hook(fail),
        "pre": lambda: y.grad_fn.register_prehook(fail),
        "post": lambda: y.grad_fn.register_hook(fail),
        "after": lambda: x.register_post_accumulate_grad_hook(fail),
    }[place]()
    with pytest.raises(Stop, match=place):
        z.sum().backward(retain_graph=True)
    assert taeda.is_grad_enabled()
    handle.remove()
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert (x * 3).requires_grad


def test_hook_that_returns_nonsense_is_an_error(x):
    x.register_hook(lambda g: "text")
    with pytest.raises(TypeError, match="hook"):
        x.sum().backward()
    assert x.grad is None


def test_hook_that_returns_another_shape_is_an_error(x):
    x.register_hook(lambda g: taeda.ones(7))
    with pytest.raises(RuntimeError, match="shape"):
        x.sum().backward()
    assert x.grad is None


def test_hooks_run_under_grad_and_inputs(x):
    calls = []
    y = x * 2
    y.register_hook(lambda g: (calls.append("y"), g * 3)[1])
    x.register_hook(lambda g: calls.append("x"))
    (g,) = grad(y.sum(), y, retain_graph=True)
    assert g.tolist() == [3, 3] and calls == ["y"]
    (g,) = grad(y.sum(), x, retain_graph=True)
    assert g.tolist() == [6, 6] and calls == ["y", "y", "x"]
    backward(y.sum(), inputs=[x])
    assert x.grad.tolist() == [6, 6]


def test_hook_can_record_second_derivatives(x):
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [2, 8]  # 2 x * x
    (gg,) = grad(g.sum(), x)
    assert gg.tolist() == [4, 8]
