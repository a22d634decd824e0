"""Gradients of operators that `taeda.library` makes of Python functions."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

import taeda_autograd
import taeda_tensor_core as taeda
from taeda_tensor_core import Tensor, library

counter = itertools.count()


def sine(name=None, **options):
    """An operator whose function knows nothing of gradients."""

    @library.custom_op(name or f"gradient_tests::op{next(counter)}", mutates_args=(), **options)
    def op(x: Tensor, k: float = 1.0) -> Tensor:
        return taeda.tensor(np.sin(x.detach().numpy()) * k)

    return op


def register(op):
    def setup(ctx, inputs, output):
        x, ctx.k = inputs
        ctx.save_for_backward(x)
        ctx.shape = output.shape

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False) and ctx.shape == grad.shape
        return grad * x.cos() * ctx.k, None

    op.register_autograd(backward, setup_context=setup)


def test_gradient_of_a_custom_operator():
    op = sine()
    register(op)
    x = taeda.tensor([0.0, 1.0], dtype=taeda.float64, requires_grad=True)
    op(x, 3.0).sum().backward()
    assert np.allclose(x.grad.numpy(), 3 * np.cos([0.0, 1.0]), rtol=1e-15)
    assert taeda_autograd.gradcheck(lambda t: op(t, 2.0), (x,))


def test_second_derivative():
    op = sine()
    register(op)
    x = taeda.tensor([0.3], dtype=taeda.float64, requires_grad=True)
    (first,) = taeda_autograd.grad(op(x).sum(), x, create_graph=True)
    (second,) = taeda_autograd.grad(first.sum(), x)
    assert np.allclose(second.numpy(), -np.sin([0.3]), rtol=1e-12)


def test_operator_without_gradient_says_so():
    op = sine()
    x = taeda.ones(2, requires_grad=True)
    result = op(x)
    assert result.requires_grad
    with pytest.raises(RuntimeError, match=r"no gradient is registered.*register_autograd"):
        result.sum().backward()


def test_absent_gradients_come_as_zeros():
    @library.custom_op(f"gradient_tests::op{next(counter)}", mutates_args=())
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x * 3

    seen = []

    def backward(ctx, first, second):
        seen.append((first.tolist(), second.tolist()))
        return first * 2 + second * 3

    both.register_autograd(backward)
    x = taeda.ones(2, requires_grad=True)
    both(x)[1].sum().backward()
    assert seen == [([0.0, 0.0], [1.0, 1.0])] and x.grad.tolist() == [3.0, 3.0]


def test_keyword_only_arguments():
    @library.custom_op(f"gradient_tests::op{next(counter)}", mutates_args=())
    def op(x: Tensor, *, k: float) -> Tensor:
        return x * k

    def setup(ctx, inputs, keyword_only_inputs, output):
        assert len(inputs) == 1
        ctx.k = keyword_only_inputs["k"]

    op.register_autograd(lambda ctx, grad: grad * ctx.k, setup_context=setup)
    x = taeda.ones(2, requires_grad=True)
    op(x, k=4.0).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("items", [False, True])
def test_what_an_operator_writes_makes_saved_tensors_stale(items):
    name = f"gradient_tests::op{next(counter)}"
    if items:

        @library.custom_op(name, mutates_args=("xs",))
        def grow(xs: Sequence[Tensor], by: float) -> None:
            for x in xs:
                x.numpy()[...] += by

        call = lambda x: grow([x], 1.0)  # noqa: E731
    else:

        @library.custom_op(name, mutates_args={"x"})
        def grow(x: Tensor, by: float) -> None:
            x.numpy()[...] += by

        call = lambda x: grow(x, 1.0)  # noqa: E731
    x = taeda.ones(3, requires_grad=True)
    kept = x * 2
    result = kept.exp()
    call(result.detach())
    assert result.tolist() == (taeda.full((3,), 2.0).exp() + 1).tolist() and result._version > 0
    with pytest.raises(RuntimeError, match=r"exp.*version|version.*exp"):
        result.sum().backward()
    other = taeda.zeros(2)
    call(other)
    assert other.tolist() == [1.0, 1.0] and other._version > 0
    with pytest.raises(RuntimeError, match=r"leaf|derivative"):
        call(x)


def test_a_declared_write_counts_whatever_the_function_does():
    @library.custom_op(f"gradient_tests::op{next(counter)}", mutates_args={"x"})
    def touch(x: Tensor, y: Tensor) -> Tensor:
        return y * 2

    x, y = taeda.ones(2), taeda.ones(2)
    before = x._version, y._version
    assert touch(x, y).tolist() == [2.0, 2.0]
    assert (x._version, y._version) == (before[0] + 1, before[1])


def test_wrong_number_of_gradients():
    op = sine()
    op.register_autograd(lambda ctx, grad: (grad, None, None))
    with pytest.raises(RuntimeError, match="backward gave 3 gradients, expected one for each of 2 arguments"):
        op(taeda.ones(1, requires_grad=True)).sum().backward()


def test_opcheck_compares_gradients():
    op = sine()
    op.register_fake(lambda x, k: taeda.empty_like(x))
    x = taeda.tensor([0.5], dtype=taeda.float64, requires_grad=True)
    found = library.opcheck(op, (x,), raise_exception=False)
    assert "no gradient is registered" in str(found["test_autograd_registration"])
    register(op)
    assert set(library.opcheck(op, (x, 2.0)).values()) == {"SUCCESS"}
    op.register_autograd(lambda ctx, grad: (grad * 7, None))
    with pytest.raises(library.OpCheckError, match="the gradient is not that of the function"):
        library.opcheck(op, (x,))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions_by_one_name(dims, transposed):
    """Against the recorded ones."""
    taeda.manual_seed(dims)
    x = taeda.randn(2, 4, *[5, 6, 4][:dims], dtype=taeda.float64, requires_grad=True)
    w = taeda.randn(4, 2, *[3, 2, 2][:dims], dtype=taeda.float64, requires_grad=True)
    b = taeda.randn(4, dtype=taeda.float64, requires_grad=True)
    options = ([2] * dims, [1] * dims, [1] * dims, transposed, [0] * dims, 2)
    y = taeda.convolution(x, w, b, *options)
    grad = taeda.randn(y.shape, dtype=taeda.float64)
    y.backward(grad)
    found = taeda.ops.aten.convolution_backward.default(grad, x, w, [4], *options, [True, True, True])
    for one, leaf in zip(found, (x, w, b), strict=True):
        taeda.testing.assert_close(one.detach(), leaf.grad)
