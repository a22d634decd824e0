"""Dual tensors against derivatives that are known."""

import pytest

import taeda
from taeda.autograd import forward_ad as fwd


def test_tangents_are_derivatives_along_directions():
    x, w = taeda.randn(3, dtype=taeda.float64), taeda.randn(3, 4, dtype=taeda.float64)
    t, u = taeda.randn(3, dtype=taeda.float64), taeda.randn(3, 4, dtype=taeda.float64)
    with fwd.dual_level():
        made = fwd.make_dual(x, t) @ fwd.make_dual(w, u)
        value, tangent = fwd.unpack_dual(made)
        assert fwd.unpack_dual(x).tangent is None
        again = fwd.unpack_dual(made.sin()).tangent
    taeda.testing.assert_close(value.detach(), x @ w)
    taeda.testing.assert_close(tangent, t @ w + x @ u)
    taeda.testing.assert_close(again, (x @ w).cos() * (t @ w + x @ u))


def test_what_has_a_history_keeps_it():
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(x, taeda.ones(2)) ** 3).tangent
    tangent.sum().backward()
    taeda.testing.assert_close(x.grad, 6 * x.detach())


def test_tangents_have_a_history_where_directions_have():
    direction = taeda.tensor([1.0, 2.0], requires_grad=True)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(taeda.tensor([3.0, 4.0]), direction) ** 2).tangent
    tangent.sum().backward()
    assert direction.grad.tolist() == [6.0, 8.0]


def test_duals_change_in_place():
    values, tangent = taeda.tensor([1.0, 2.0]), taeda.tensor([3.0, 4.0])
    with fwd.dual_level():
        x = fwd.make_dual(values, tangent)
        assert fwd.unpack_dual(x).tangent is tangent
        part = x[:1]
        part.mul_(5)
        x.add_(1)
        assert fwd.unpack_dual(x).tangent.tolist() == [15.0, 4.0]
        assert fwd.unpack_dual(x).primal.tolist() == [6.0, 3.0] == values.tolist()
        into = taeda.zeros(3)
        into[1:].copy_(x * x)
        assert fwd.unpack_dual(into).tangent.tolist() == [0.0, 180.0, 24.0]


def test_levels():
    with pytest.raises(RuntimeError, match="enter_dual_level"):
        fwd.make_dual(taeda.ones(1), taeda.ones(1))
    with fwd.dual_level(), pytest.raises(RuntimeError, match="Nested"):
        fwd.enter_dual_level()
    with fwd.dual_level(), pytest.raises(RuntimeError, match="shape"):
        fwd.make_dual(taeda.ones(2), taeda.ones(3))
    with fwd.dual_level(), pytest.raises(RuntimeError, match="'tangent' itself moves"):
        fwd.make_dual(taeda.ones(2), fwd.make_dual(taeda.ones(2), taeda.ones(2)))
    with pytest.raises(RuntimeError, match="not the last"):
        fwd.exit_dual_level()


def test_a_function_that_gives_its_tangents_alone():
    class Exp(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, y):
            result = taeda.exp(x) * scale
            ctx.save_for_forward(result, y)
            ctx.result, ctx.scale = result, scale
            return result + y * y

        @staticmethod
        def jvp(ctx, x, _, y):
            result, by = ctx.saved_tensors
            assert taeda.equal(ctx.result, result)
            del ctx.scale, ctx.result  # called once
            return x * result + (0 if y is None else 2 * y * by)

    x = taeda.tensor([0.5, -1.0, 2.0], dtype=taeda.float64, requires_grad=True)
    y = taeda.tensor([3.0, 1.0, -2.0], dtype=taeda.float64)
    direction = taeda.tensor([1.0, 2.0, -1.0], dtype=taeda.float64)
    with fwd.dual_level():
        out = Exp.apply(fwd.make_dual(x, direction), 2.0, y)
        assert fwd.unpack_dual(out).tangent.tolist() == pytest.approx((direction * 2 * x.exp()).tolist())
    other = y.clone().requires_grad_()
    assert taeda.autograd.gradcheck(
        lambda a, b: Exp.apply(a, 2.0, b), (x, other), check_forward_ad=True, check_backward_ad=False
    )


class Marked(taeda.autograd.Function):
    """x² and 3 x, whose backward gives 10 times the derivatives and whose jvp 100 times."""

    @staticmethod
    def forward(ctx, x, factor, y):
        result = x * x
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, None, result)
        ctx.factor = factor
        return result, x * factor

    @staticmethod
    def backward(ctx, squares, multiples):
        (x,) = ctx.saved_tensors
        return squares * 20 * x + multiples * 10 * ctx.factor, None, None

    @staticmethod
    def jvp(ctx, along, factor, y):
        x, nothing, result = ctx.saved_tensors
        assert nothing is None and factor is None and y.tolist() == [0.0, 0.0]
        assert taeda.equal(result, x * x)
        multiples = along.numpy() * 100 * ctx.factor  # no derivative of this one is asked for
        del ctx.factor
        return along * 200 * x, taeda.from_numpy(multiples)


def test_a_function_is_asked_for_its_tangents():
    x, y, along = taeda.tensor([1.0, -2.0]), taeda.tensor([5.0, 6.0]), taeda.tensor([0.5, 2.0])
    for recorded in (True, False):
        with taeda.set_grad_enabled(False), fwd.dual_level():
            with taeda.set_grad_enabled(recorded):
                dual = fwd.make_dual(x, along)
                squares, multiples = Marked.apply(dual, 3.0, y)
                again = Marked.apply(squares + dual, 3.0, y)[0]
            for _ in range(2):
                assert fwd.unpack_dual(squares).tangent.tolist() == [100.0, -800.0]
                assert fwd.unpack_dual(multiples).tangent.tolist() == [150.0, 600.0]
            inner = (x * x + x) * taeda.tensor([100.5, -798.0])
            taeda.testing.assert_close(fwd.unpack_dual(again).tangent, 200 * inner)
    leaf = x.clone().requires_grad_()
    sum(t.sum() for t in Marked.apply(leaf, 3.0, y)).backward()
    assert leaf.grad.tolist() == [50.0, -10.0]


def test_tangents_of_functions_are_checked():
    class Wrong(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, made):
            ctx.made = made
            return x.clone()

        @staticmethod
        def backward(ctx, weight):
            return weight, None

        @staticmethod
        def jvp(ctx, along, _):
            return ctx.made(along)

    with fwd.dual_level():
        x = fwd.make_dual(taeda.ones(2), taeda.ones(2))
        assert fwd.unpack_dual(Wrong.apply(x, lambda t: None)).tangent is None
        with pytest.raises(RuntimeError, match=r"Wrong\.jvp: it gave 2 tangents, expected 1"):
            fwd.unpack_dual(Wrong.apply(x, lambda t: (t, t)))
        with pytest.raises(
            RuntimeError, match=r"Wrong\.jvp: the tangent of output 0 has shape \(\), expected \(2,\)"
        ):
            fwd.unpack_dual(Wrong.apply(x, lambda t: t[0]))


def test_jacobians_in_forward_mode_ask_for_tangents():
    x = taeda.tensor([1.0, -2.0])

    def squares(a):
        return Marked.apply(a, 3.0, taeda.ones(2))[0]

    found = taeda.autograd.functional.jacobian(squares, x, strategy="forward-mode", vectorize=True)
    assert found.tolist() == [[200.0, 0.0], [0.0, -400.0]]
    assert taeda.autograd.functional.jacobian(squares, x).tolist() == [[20.0, 0.0], [0.0, -40.0]]


def test_a_function_without_derivatives_says_so():
    class Nothing(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with pytest.raises(NotImplementedError, match=r"Nothing.*backward or vjp method"):
        Nothing.apply(taeda.ones(2, requires_grad=True)).sum().backward()


def test_no_grad_is_for_backward_alone():
    values, direction = taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 10.0])
    weight = taeda.tensor([3.0, 4.0], requires_grad=True)
    with taeda.no_grad(), fwd.dual_level():
        x = fwd.make_dual(values, direction)
        primal, tangent = fwd.unpack_dual(x * x * weight)
        assert primal.numpy().tolist() == [3.0, 16.0] and tangent.numpy().tolist() == [6.0, 160.0]
        joined = taeda.cat([x, values])
        joined[0] = 2 * x[1]
        assert fwd.unpack_dual(joined).tangent.tolist() == [20.0, 10.0, 0.0, 0.0]
        assert fwd.unpack_dual(x.exp().detach()).tangent is None
        weight.add_(tangent)  # a leaf changes in place, as under no_grad elsewhere
        assert not taeda.is_grad_enabled()
    assert weight.tolist() == [9.0, 164.0]
    with fwd.dual_level():
        x = fwd.make_dual(values, direction)
        with taeda.no_grad():
            inner = fwd.unpack_dual(x * weight)
        assert inner.tangent.tolist() == [9.0, 1640.0] and not inner.tangent.requires_grad
        outer = fwd.unpack_dual(x * weight)
        assert outer.primal.requires_grad and outer.tangent.requires_grad
        assert not fwd.unpack_dual(x.sin()).primal.requires_grad


def test_nothing_moves_in_inference_mode():
    with taeda.inference_mode(), fwd.dual_level():
        x = fwd.make_dual(taeda.full((2,), 3.0), taeda.ones(2))
        primal, tangent = fwd.unpack_dual(x * 2)
    assert primal.tolist() == [6, 6]
    assert tangent is None


def test_a_level_ends_below_modes_that_were_entered_in_it():
    stack = taeda.overrides._get_current_function_mode_stack
    fwd.enter_dual_level()
    with taeda.device("cpu"):
        above = stack()[-1]
        fwd.exit_dual_level()
        assert stack() == [above]
    assert stack() == []


@pytest.mark.parametrize("ways", [(), (None, False), (False, True), (False,)])
@pytest.mark.parametrize("named", [False, True])
def test_gradients_inside_a_level_move_with_their_inputs(ways, named):
    """For the sum of cubes the gradient is 3 x**2 w, which moves by 6 x t w + 3 x**2 u."""
    x, t, w, u = (taeda.tensor(v) for v in ([1.0, 2.0], [0.5, -1.0], [1.0, 3.0], [2.0, 0.25]))
    options = dict(zip(("retain_graph", "create_graph"), ways, strict=False)) if named else {}
    with fwd.dual_level():
        point = fwd.make_dual(x.clone().requires_grad_(), t)
        weight = fwd.make_dual(w, u)
        (found,) = taeda.autograd.grad(
            (point.exp().log()) ** 3, point, weight, *(() if named else ways), **options
        )
        value, tangent = fwd.unpack_dual(found)
    assert taeda.allclose(value, 3 * x**2 * w)
    assert taeda.allclose(tangent, 6 * x * t * w + 3 * x**2 * u)


def test_duals_of_plain_tensors_ask_for_no_gradient():
    values, direction = taeda.tensor([1.0, -2.0]), taeda.tensor([3.0, 0.5])
    weight = taeda.tensor([2.0, 4.0], requires_grad=True)
    with fwd.dual_level():
        x = fwd.make_dual(values, direction)
        joined = taeda.zeros(3)
        joined[1:] = x.sin() * 2
        part = joined[1:]
        for made in (x, x * 2, joined, part, x.detach()):
            assert not made.requires_grad and made.is_leaf and made.grad_fn is None
            assert "grad_fn" not in repr(made)
        assert (x * 2).numpy().tolist() == [2.0, -4.0]
        assert fwd.unpack_dual(part).tangent.tolist() == pytest.approx(
            (2 * values.cos() * direction).tolist()
        )
        with pytest.raises(RuntimeError, match="does not require grad"):
            joined.sum().backward()
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            x.register_hook(print)
        mixed = x * weight
        assert mixed.requires_grad and mixed.grad_fn.name() == "MulBackward0"
        mixed.sum().backward()
        assert fwd.make_dual(weight, direction).requires_grad
    assert weight.grad.tolist() == [1.0, -2.0]
    assert not (x + 1).requires_grad


def test_a_dual_can_be_told_to_require_grad():
    with fwd.dual_level():
        x = fwd.make_dual(taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 0.5]))
        x.requires_grad_(False)
        x.requires_grad_()
        assert x.requires_grad and x.is_leaf and x.grad_fn is None
        cubes = x**3
        assert cubes.requires_grad and fwd.unpack_dual(cubes).tangent.tolist() == [3.0, 6.0]
        cubes.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_a_function_is_given_duals_that_ask_for_no_gradient():
    class Square(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    with fwd.dual_level():
        made = Square.apply(fwd.make_dual(taeda.tensor(3.0), taeda.tensor(1.0)))
        assert not made.requires_grad
        assert fwd.unpack_dual(made).tangent.item() == 6.0
