"""Function: what a user's own operation may say of itself, and how mistakes in it are told."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, grad, gradcheck, gradgradcheck, once_differentiable


class Scale(Function):
    """Product with a number; differentiable any number of times."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


class Cube(Function):
    """forward and setup_context apart."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def test_derivatives_of_any_order(make):
    assert gradcheck(lambda x: Scale.apply(x, 3.0), (make(3),))
    assert gradgradcheck(Cube.apply, (make(3),))
    x = make(1)
    g = Cube.apply(x)
    for expected in (3 * x.item() ** 2, 6 * x.item(), 6.0):
        (g,) = grad(g.sum(), x, create_graph=True)
        assert g.item() == pytest.approx(expected, rel=1e-12)


def test_needs_input_grad_and_several_outputs(make):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, ga, gb):
            seen.append((ctx.needs_input_grad, ga.tolist(), gb.tolist()))
            return ga * 2, gb * 3

    a, b = make(2), make(2, requires_grad=False)
    first, _ = Two.apply(a, b)
    first.sum().backward()
    assert seen == [((True, False), [1, 1], [0, 0])]
    assert a.grad.tolist() == [2, 2] and b.grad is None


def test_gradients_that_do_not_come_may_stay_none(make):
    class Two(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, ga, gb):
            assert ga is None
            return gb * 3

    x = make(2)
    Two.apply(x)[1].sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_mark_dirty_and_non_differentiable(make):
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    class Positive(Function):
        @staticmethod
        def forward(ctx, x):
            sign = x > 0
            ctx.mark_non_differentiable(sign)
            return x * 2, sign

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    x = make(3)
    y = x * 1
    z = AddOne.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    doubled, sign = Positive.apply(x)
    assert doubled.requires_grad and not sign.requires_grad


def test_once_differentiable(make):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2

    x = make(2)
    (g,) = grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.tolist() == [8 * v for v in x.tolist()]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(g.sum(), x)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda g: (g, g), "2"),
        (lambda g: g[:1], "shape|size"),
        (lambda g: "text", "str|Tensor"),
        (lambda g: None, None),
    ],
)
def test_what_backward_returns_is_checked(returned, words, make):
    class Odd(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return returned(g)

    x = make(3)
    y = Odd.apply(x).sum()
    if words is None:
        y.backward()
        assert x.grad is None
        return
    with pytest.raises((RuntimeError, TypeError), match=rf"(?s)Odd.*({words})"):
        y.backward()
    assert x.grad is None


def test_saved_tensors_are_checked_and_freed(make):
    x = make(2)
    y = x * 1
    z = Cube.apply(y)
    z.sum().backward()
    with pytest.raises(RuntimeError, match=r"Cube.*retain_graph"):
        z.sum().backward()
    z = Cube.apply(y)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match=r"CubeBackward.*version"):
        z.sum().backward()


def test_an_error_in_backward_keeps_its_type_and_the_state(make):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise LookupError("inside")

    x = make(2)
    with pytest.raises(LookupError, match="inside"):
        Bad.apply(x).sum().backward()
    assert x.grad is None and (x * 1).requires_grad


def test_functions_are_not_instantiated_and_need_both_halves(make):
    with pytest.raises(RuntimeError, match=r"Scale.*apply"):
        Scale()

    class Empty(Function):
        pass

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match=r"Empty.*forward"):
        Empty.apply(make(1))
    with pytest.raises(NotImplementedError, match=r"Half.*backward"):
        Half.apply(make(1)).backward()


def test_numbers_and_objects_pass_through(make):
    class Keep(Function):
        @staticmethod
        def forward(ctx, x, settings, label=None):
            assert settings == {"a": 1} and label == "name"
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    x = make(2)
    Keep.apply(x, {"a": 1}, "name").sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_view_of_the_input_is_returned_as_one(make):
    class Row(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.sizes = x.shape
            return x[0]

        @staticmethod
        def backward(ctx, g):
            out = taeda.zeros(*ctx.sizes, dtype=g.dtype)
            out[0] = g
            return out

    x = make(2, 3)
    Row.apply(x).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [0, 0, 0]]
