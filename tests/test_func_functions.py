"""User-defined functions under transforms: which of their methods each transform calls."""

import pytest

import taeda
from taeda.func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap

MARK = 10  # backward says so many times the derivative, and shows by it that it was called


def doubles(*shape):
    return taeda.arange(1.0, taeda.Size(shape).numel() + 1, dtype=taeda.float64).reshape(shape)


def same(found, expected):
    taeda.testing.assert_close(found, expected)


class Square(taeda.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, weight):
        (x,) = ctx.saved_tensors
        return weight * 2 * x * MARK

    @staticmethod
    def vmap(info, in_dims, x):
        return x * x, in_dims[0]


class Cube(Square):
    """Its backward is that of x³ but for the square in it, which is a function of its own."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def backward(ctx, weight):
        (x,) = ctx.saved_tensors
        return weight * 3 * Square.apply(x)

    @staticmethod
    def vmap(info, in_dims, x):
        return x**3, in_dims[0]


def square(x):
    return Square.apply(x).sum()


def cube(x):
    return Cube.apply(x).sum()


def test_a_derivative_inside_of_a_vmap_is_that_of_backward():
    x = doubles(3, 2)
    marked = MARK * 2 * x
    same(vmap(grad(square))(x), marked)
    same(vmap(grad(square), in_dims=1, out_dims=1)(x), marked)
    same(vmap(vmap(grad(square)))(x), marked)
    same(vmap(lambda a, w: vjp(Square.apply, a)[1](w)[0])(x, x), marked * x)
    same(vmap(jacrev(Square.apply))(x), taeda.diag_embed(marked))
    same(jacrev(Square.apply)(x[0]), taeda.diag(marked[0]))
    value = vmap(taeda.func.grad_and_value(square))(x)[1]
    same(value, (x * x).sum(1))


def test_a_derivative_outside_of_a_vmap_is_that_of_its_rule():
    x = doubles(3, 2)
    same(grad(lambda a: vmap(square)(a).sum())(x), 2 * x)
    same(vmap(grad(lambda a: vmap(square)(a).sum()))(doubles(2, 3, 2)), 2 * doubles(2, 3, 2))
    leaf = x.clone().requires_grad_()
    vmap(Square.apply)(leaf).sum().backward()
    same(leaf.grad, 2 * x)


def test_functions_called_in_backward_are_seen_by_the_transforms_that_still_run():
    x = doubles(3, 2)
    inner = grad(cube)
    same(vmap(grad(lambda a: inner(a).sum()))(x), 3 * MARK * 2 * x)
    same(grad(lambda a: vmap(inner)(a).sum())(x), 6 * x)
    same(vmap(jacrev(jacrev(Cube.apply)))(x).sum((2, 3)), 3 * MARK * 2 * x)
    twice = grad(lambda a: inner(a).sum())
    same(vmap(grad(lambda a: twice(a).sum()))(x), taeda.full_like(x, 3 * MARK * 2 * 1))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, None), (None, 1)])
def test_several_arguments_and_outputs_inside_of_a_vmap(in_dims):
    needs = []

    class Products(taeda.autograd.Function):
        @staticmethod
        def forward(x, y, times=3):
            return x * y, (x + y) * times

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:2])
            ctx.times = inputs[2]

        @staticmethod
        def backward(ctx, products, sums):
            x, y = ctx.saved_tensors
            needs.append(ctx.needs_input_grad)
            return products * y * 7 + sums * ctx.times, products * x * 5 + sums * ctx.times, None

        @staticmethod
        def vmap(info, in_dims, x, y, times):
            x, y = (t if at is None else t.movedim(at, 0) for t, at in zip((x, y), in_dims, strict=False))
            return (x * y, ((x + y) * times).movedim(0, 1)), (0, 1)

    def total(x, y):
        products, sums = Products.apply(x, y)
        return products.sum() + 2 * sums.sum()

    whole = doubles(3, 2), doubles(3, 2) + 1
    given = [
        t[0] if at is None else t.movedim(0, at).contiguous() for t, at in zip(whole, in_dims, strict=True)
    ]
    x, y = (t[:1].expand(3, 2) if at is None else t for t, at in zip(whole, in_dims, strict=True))
    found = vmap(grad(total, argnums=(0, 1)), in_dims=in_dims)(*given)
    same(found, (7 * y + 6, 5 * x + 6))
    same(vmap(grad(total, argnums=1), in_dims=in_dims)(*given), 5 * x + 6)
    assert needs == [(True, True, False), (False, True, False)]


def test_outputs_that_are_the_same_for_all_of_a_batch():
    class Doubled(taeda.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2, taeda.ones(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, weight, _):
            return weight * 6

        @staticmethod
        def vmap(info, in_dims, x):
            return (x * 2, taeda.ones(2)), (in_dims[0], None)

    def total(x):
        doubled, ones = Doubled.apply(x)
        return (doubled * ones).sum()

    same(vmap(grad(total))(doubles(3, 2)), taeda.full((3, 2), 6.0, dtype=taeda.float64))


class Moving(Square):
    """Whose jvp says 100 times the derivative."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def jvp(ctx, along):
        x, result = ctx.saved_tensors
        assert x.shape == result.shape == along.shape
        return along * 200 * x

    @staticmethod
    def vmap(info, in_dims, x):
        return Moving.apply(x), in_dims[0]


class MovingOfOne(Moving):
    generate_vmap_rule = True
    vmap = taeda.autograd.Function.vmap


@pytest.mark.parametrize("function", [Moving, MovingOfOne])
def test_forward_mode_asks_functions_for_their_tangents(function):
    x, along, apply = doubles(3, 2), doubles(3, 2) + 1, function.apply
    moved = 200 * x * along
    same(jvp(apply, (x,), (along,)), (x * x, moved))
    same(linearize(apply, x)[1](along), moved)
    same(jvp(lambda a: apply(apply(a) + a), (x,), (along,))[1], 200 * (x * x + x) * (moved + along))
    same(jacfwd(apply)(x[0]), taeda.diag(200 * x[0]))
    same(vmap(jacfwd(apply))(x), taeda.diag_embed(200 * x))
    same(vmap(lambda a, b: jvp(apply, (a,), (b,))[1])(x, along), moved)
    same(vmap(vmap(lambda a, b: jvp(apply, (a,), (b,))[1]))(x, along), moved)
    same(vmap(lambda b: jvp(apply, (x[0],), (b,))[1])(along), 200 * x[0] * along)
    same(jvp(vmap(apply), (x,), (along,))[1], moved)


@pytest.mark.parametrize("function", [Moving, MovingOfOne])
def test_each_mode_has_its_method_where_both_are_nested(function):
    x, along, apply = doubles(3, 2), doubles(3, 2) + 1, function.apply

    def total(a):
        return apply(a).sum()

    same(jvp(grad(total), (x,), (along,))[1], 2 * MARK * along)
    same(grad(lambda a: jvp(apply, (a,), (along,))[1].sum())(x), 200 * along)
    same(vmap(lambda a, b: jvp(grad(total), (a,), (b,))[1])(x, along), 2 * MARK * along)
    same(jacfwd(jacrev(apply))(x[0]).sum((1, 2)), taeda.full((2,), 2.0 * MARK, dtype=taeda.float64))
    same(jacrev(jacfwd(apply))(x[0]).sum((1, 2)), taeda.full((2,), 200.0, dtype=taeda.float64))


def _partly_unrecorded(x):
    """x**3 twice; a factor of the one under no_grad."""
    with taeda.no_grad():
        square = x * x
        assert not taeda.is_grad_enabled()
    return square * x + x**3


def test_no_grad_does_not_hold_derivatives_along_directions():
    x, along = doubles(4), doubles(4).flip(0)
    expected = 6 * x**2
    value, moved = taeda.func.jvp(_partly_unrecorded, (x,), (along,))
    same(value, 2 * x**3)
    same(moved, expected * along)
    same(taeda.func.jacfwd(_partly_unrecorded)(x), taeda.diag(expected))
    same(taeda.func.linearize(_partly_unrecorded, x)[1](along), expected * along)
    same(vmap(taeda.func.jacfwd(_partly_unrecorded))(x), expected)
    # Backward it does.
    same(taeda.func.jacrev(_partly_unrecorded)(x), taeda.diag(4 * x**2))
    same(taeda.func.grad(lambda y: _partly_unrecorded(y).sum())(x), 4 * x**2)


def test_products_free_their_graph_when_they_are_told_to():
    _, products = vjp(lambda x: x**3, doubles(3))
    same(products(doubles(3))[0], products(doubles(3), retain_graph=False)[0])
    with pytest.raises(RuntimeError, match="second time"):
        products(doubles(3))


def test_what_outlives_a_program_gets_no_history_from_directions():
    weight, seen = taeda.ones(3, dtype=taeda.float64, requires_grad=True), taeda.zeros(3, dtype=taeda.float64)

    def program(x):
        with taeda.no_grad():
            seen.add_(x)
            weight.mul_(2)
        return x * weight.detach()

    same(taeda.func.jvp(program, (doubles(3),), (taeda.ones(3, dtype=taeda.float64),))[1], weight.detach())
    assert not seen.requires_grad and weight.is_leaf and seen.abs().sum() > 0
