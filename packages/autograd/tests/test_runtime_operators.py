"""Gradients of operators that are defined while the program runs."""

import pytest

import taeda_autograd
import taeda_tensor_core as tc
from taeda_tensor_core import library


@pytest.fixture
def lib():
    with library.Library("gradpkg") as made:
        yield made


@pytest.fixture
def scale(lib):
    made = lib.define("gradpkg::scale(Tensor self, float k=2.0) -> Tensor")
    made.infer(lambda self, k: (self.shape, self.dtype))
    made.kernel("cpu")(lambda outputs, inputs: outputs[0].copy_(inputs[0] * inputs[1]))
    return made


def test_without_a_derivative_backward_says_what_is_missing(scale):
    x = tc.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="gradpkg::scale: this operator has no derivative"):
        scale(x).sum().backward()


def test_derivative_first_and_second_order(scale):
    scale.derivative(lambda grads, arguments, results: (scale(grads[0], arguments[1]), None))
    x = tc.tensor([1.0, 2.0], dtype=tc.float64, requires_grad=True)
    (first,) = taeda_autograd.grad((scale(x, 3.0) ** 2).sum(), [x], create_graph=True)
    assert first.tolist() == [18.0, 36.0]
    (second,) = taeda_autograd.grad(first.sum(), [x])
    assert second.tolist() == [18.0, 18.0]
    assert taeda_autograd.gradcheck(lambda t: scale(t, 3.0), (x,))
    assert "gradpkg::scale" in repr(scale(x))


def test_composites_are_differentiated_by_what_they_call(lib):
    made = lib.operator("gradpkg::cube(Tensor self) -> Tensor")(lambda self: self * self * self)
    x = tc.tensor([2.0], requires_grad=True)
    made(x).backward()
    assert x.grad.tolist() == [12.0]


def test_several_results_lists_and_absent_gradients(lib):
    made = lib.define("gradpkg::ends(Tensor[] tensors, Tensor? shift=None) -> (Tensor first, Tensor last)")

    @made.kernel("cpu")
    def _(outputs, inputs):
        tensors, _shift = inputs
        return tensors[0] * 2, tensors[-1] * 3

    seen = []

    @made.derivative
    def _(grads, arguments, results):
        seen.append([g is None for g in grads])
        tensors, shift = arguments
        assert shift is None and len(results) == 2
        first, last = grads
        return [None if first is None else first * 2] + [None] * (len(tensors) - 2) + [
            None if last is None else last * 3
        ], None

    a, b, c = (tc.ones(2, requires_grad=True) for _ in range(3))
    made([a, b, c])[1].sum().backward()
    assert seen == [[True, False]]
    assert a.grad is None and b.grad is None and c.grad.tolist() == [3.0, 3.0]


def test_stale_arguments_and_freed_graphs_are_noticed(scale):
    scale.derivative(lambda grads, arguments, results: (grads[0] * arguments[1], None))
    leaf = tc.ones(2, requires_grad=True)
    x = leaf * 1
    y = scale(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()
    z = scale(leaf).sum()
    z.backward()
    with pytest.raises(RuntimeError):
        z.backward()


def test_errors_in_a_derivative_keep_their_type(scale):
    @scale.derivative
    def _(grads, arguments, results):
        raise KeyError("inside")

    x = tc.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="inside"):
        scale(x).sum().backward()
    scale.derivative(lambda grads, arguments, results: (grads[0],))
    with pytest.raises(TypeError, match="gradpkg::scale: the derivative must give a tuple of 2 gradients"):
        scale(x).sum().backward()
    assert x.grad is None and taeda_autograd.grad((x * 2).sum(), [x])[0].tolist() == [2.0, 2.0]
