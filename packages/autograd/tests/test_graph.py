"""autograd.graph: edges in the place of tensors, callbacks at the end of a backward, hooks on several tensors."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, Variable, backward, enable_grad, grad
from taeda_autograd.graph import GradientEdge, Node, get_gradient_edge, register_multi_grad_hook


@pytest.fixture
def x():
    return taeda.tensor([1.0, 2.0], requires_grad=True)


queue_callback = Variable._execution_engine.queue_callback


def test_edges_stand_for_tensors(x):
    y = x * x
    inner, leaf, root = (get_gradient_edge(t) for t in (y, x, (y * 3).sum()))
    assert isinstance(inner.node, Node) and inner.output_nr == 0
    del y
    assert [g.tolist() for g in grad(root, [leaf, inner], retain_graph=True)] == [[6, 12], [3, 3]]
    assert grad(inner, x, taeda.ones(2), retain_graph=True)[0].tolist() == [2, 4]
    backward(root, retain_graph=True)
    assert x.grad.tolist() == [6, 12]
    backward([root], inputs=[x])
    assert x.grad.tolist() == [12, 24]


def test_backward_into_edges(x):
    inner = x * x
    other = taeda.ones(2, requires_grad=True)
    root = (inner * other).sum()
    backward(root, inputs=[get_gradient_edge(inner), other], retain_graph=True)
    assert other.grad.tolist() == [1, 4]
    assert x.grad is None
    backward(root, inputs=get_gradient_edge(x))
    assert x.grad.tolist() == [2, 4]
    assert other.grad.tolist() == [1, 4]


def test_edges_that_do_not_fit(x):
    y = x * x
    edge = get_gradient_edge(y)
    with pytest.raises(RuntimeError, match="only for scalar outputs; tensor 0 is output 0 of MulBackward0"):
        grad(edge, x)
    with pytest.raises(IndexError, match="names output 7 of MulBackward0, which has 1"):
        grad(GradientEdge(edge.node, 7), x)
    with pytest.raises(TypeError, match="graph node"):
        grad(y.sum(), GradientEdge(3, 0))
    assert grad(y.sum(), get_gradient_edge(taeda.ones(1, requires_grad=True)), allow_unused=True) == (None,)


def test_callbacks_come_when_all_gradients_are_there(x):
    seen = []

    def hook(g):
        queue_callback(lambda: (seen.append(x.grad.tolist()), queue_callback(lambda: seen.append("last"))))

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert seen == [[2, 2], "last"]
    with pytest.raises(RuntimeError, match="no backward is running"):
        queue_callback(print)
    with pytest.raises(TypeError, match="must be callable, found int"):
        queue_callback(3)


def test_callbacks_belong_to_the_innermost_backward(x):
    seen = []

    def hook(g):
        with enable_grad():
            w = taeda.ones(1, requires_grad=True) * 1
            w.register_hook(lambda g: queue_callback(lambda: seen.append("inner")))
            w.sum().backward()
        seen.append("between")
        queue_callback(lambda: seen.append("outer"))

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert seen == ["inner", "between", "outer"]


def test_errors_of_callbacks_come_out_and_leave_the_engine_sound(x):
    def fail():
        raise KeyError("callback")

    y = x * 2
    handle = y.register_hook(lambda g: queue_callback(fail))
    with pytest.raises(KeyError, match="callback"):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_a_hook_on_several_tensors_sees_all_gradients(x):
    a, b, c = x * 2, x * 3, x * 4
    seen = []
    handle = register_multi_grad_hook(
        [a, b, c], lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    (a + b * 2 + c * 3).sum().backward(retain_graph=True)
    assert seen == [[[1, 1], [2, 2], [3, 3]]]
    b.sum().backward(retain_graph=True)
    assert seen[1] == [None, [1, 1], None]
    handle.remove()
    b.sum().backward()
    assert len(seen) == 2


def test_a_hook_on_any_of_several_tensors(x):
    a, b = x * 2, x * 3
    seen = []
    register_multi_grad_hook([a, b], lambda g: seen.append(g.tolist()), mode="any")
    (a + b * 2).sum().backward(retain_graph=True)
    assert len(seen) == 1
    a.sum().backward()
    assert seen[1:] == [[1, 1]]
    with pytest.raises(ValueError, match="'all' or 'any', found 'some'"):
        register_multi_grad_hook([a], print, mode="some")


def test_nodes_have_more_edges_and_outputs_than_two_bytes_count():
    x = taeda.ones(2, requires_grad=True)
    taeda.stack([x] * 70_000).sum().backward()
    assert x.grad.tolist() == [70_000.0, 70_000.0]
    y = taeda.zeros(70_000, requires_grad=True)
    parts = y.unbind(0)
    (parts[0] * 3 + parts[65_536] * 7 + parts[69_999] * 5).backward()
    assert [y.grad[i].item() for i in (0, 65_536, 69_999)] == [3.0, 7.0, 5.0] and y.grad.sum() == 15

    class Sum(Function):
        @staticmethod
        def forward(ctx, *parts):
            return taeda.stack(parts).sum(0)

        @staticmethod
        def backward(ctx, grad):
            return (grad,) * 70_000

    x.grad = None
    Sum.apply(*([x] * 70_000)).sum().backward()
    assert x.grad.tolist() == [70_000.0, 70_000.0]
