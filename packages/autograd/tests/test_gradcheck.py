"""gradcheck and gradgradcheck accept right formulas and refuse wrong ones."""

from __future__ import annotations

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, GradcheckError, gradcheck, gradgradcheck


def function_with(slope, second=None):
    """x**3 with a given first derivative, and optionally a given second one."""

    class Slope(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return slope(x)

        @staticmethod
        def backward(ctx, g):
            return g * second(ctx.saved_tensors[0])

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (slope(x) if second is None else Slope.apply(x))

    return Cube.apply


RIGHT = lambda x: 3 * x * x  # noqa: E731
WRONG = {
    "factor": lambda x: 2 * x * x,
    "sign": lambda x: -3 * x * x,
    "small": lambda x: 3.02 * x * x,
    "offset": lambda x: 3 * x * x + 0.01,
    "one_element": lambda x: 3 * x * x + (x == x.reshape(-1)[0]) * 0.5,
    "nan": lambda x: x * float("nan"),
    "zero": lambda x: x * 0,
}


def test_right_formulas_pass(make):
    assert gradcheck(function_with(RIGHT), make(3, 2))
    assert gradgradcheck(function_with(RIGHT), make(3, 2))
    assert gradgradcheck(function_with(RIGHT, lambda x: 6 * x), make(3, 2))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_first_derivatives_are_refused(name, make):
    x = make(3, 2, low=0.5)
    with pytest.raises(
        GradcheckError, match=r"output 0 with respect to input 0[\s\S]*numeric[\s\S]*recorded"
    ):
        gradcheck(function_with(WRONG[name]), x)
    assert not gradcheck(function_with(WRONG[name]), x, raise_exception=False)


@pytest.mark.parametrize(
    "second", [lambda x: 5 * x, lambda x: -6 * x, lambda x: 6 * x + 0.1, lambda x: x * 0]
)
def test_wrong_second_derivatives_are_refused(second, make):
    function, x = function_with(RIGHT, second), make(3, 2, low=0.5)
    assert gradcheck(function, x)
    with pytest.raises(GradcheckError):
        gradgradcheck(function, x)
    assert not gradgradcheck(function, x, raise_exception=False)


def test_wrong_gradient_of_the_second_input_is_named(make):
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a * 1.1

    with pytest.raises(GradcheckError, match="respect to input 1"):
        gradcheck(Product.apply, (make(3, low=0.5), make(3, low=0.5)))


def test_forgotten_gradient_is_refused(make):
    assert not gradcheck(lambda x: x * x.detach(), make(3, low=0.5), raise_exception=False)


def test_inputs_that_do_not_matter(make):
    assert gradcheck(lambda a, b: a * 2, (make(3), make(3)))


def test_outputs_without_gradients_must_not_change(make):
    x = make(2, low=0.5)
    assert gradcheck(lambda x: (x > 1).to(x.dtype), (x,))
    assert gradcheck(lambda x: x > 1, (x,))
    with pytest.raises(GradcheckError, match="output 0 changes with input 0"):
        gradcheck(lambda x: x.detach() * 2, (x,))


def test_complex_functions():
    z = taeda.tensor([1 + 2j, 0.5 - 1j], dtype=taeda.complex128).requires_grad_()
    assert gradcheck(lambda t: t * t, z)
    assert gradcheck(lambda t: (t * t.conj()).real, z)


def test_inputs_are_as_before(make):
    x = make(3, 2)
    before = x.tolist()
    gradcheck(lambda t: t.sin(), x)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda t: 1 / 0, x)
    assert x.tolist() == before and x.grad is None


def test_refused_inputs():
    with pytest.raises(ValueError, match="require"):
        gradcheck(lambda t: t, taeda.ones(2, dtype=taeda.float64))


def test_empty_results_agree_with_their_empty_differences(make):
    assert gradcheck(lambda x: (x[:0], x * 2), make(3))
    assert gradgradcheck(lambda x: (x[:0] * x[:0], x * x), make(3))


class Square(Function):
    """x², with derivatives that are right by so many times."""

    @staticmethod
    def forward(ctx, x, backward, forward):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.backward, ctx.forward = backward, forward
        return x * x

    @staticmethod
    def backward(ctx, weight):
        (x,) = ctx.saved_tensors
        return weight * 2 * x * ctx.backward, None, None

    @staticmethod
    def jvp(ctx, along, _, __):
        (x,) = ctx.saved_tensors
        return along * 2 * x * ctx.forward


def test_forward_mode_is_checked_on_demand():
    x = taeda.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=taeda.float64, requires_grad=True)

    def check(backward, forward, **options):
        return gradcheck(lambda a: Square.apply(a, backward, forward), x, raise_exception=False, **options)

    assert check(1, 2) and not check(1, 2, check_forward_ad=True)
    assert check(1, 1, check_forward_ad=True) and not check(2, 1, check_forward_ad=True)
    assert check(2, 1, check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(GradcheckError, match="the tangent of forward mode differs"):
        gradcheck(lambda a: Square.apply(a, 1, 2), x, check_forward_ad=True)


def test_forward_mode_of_several_arguments_and_of_gradients():
    x = taeda.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=taeda.float64, requires_grad=True)
    z = taeda.tensor([1.0 + 2j, -0.5j], dtype=taeda.complex128, requires_grad=True)

    def program(a, b):
        return (a.sin() @ b).exp(), a.sum() * 2, (b * b).abs()

    assert gradcheck(program, (x.to(taeda.complex128).detach().requires_grad_(), z), check_forward_ad=True)
    assert gradcheck(lambda a: (a.exp(), a > 0), x, check_forward_ad=True)
    assert gradgradcheck(lambda a: (a**3).sin() @ a, x, check_fwd_over_rev=True)
    assert gradgradcheck(lambda a: (a**3).sin() @ a, x, check_fwd_over_rev=True, check_rev_over_rev=False)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_inputs_are_stepped_through_where_they_have_elements(layout):
    dense = taeda.tensor([[0.5, 0.0, 2.0], [0.0, -1.0, 0.0]], dtype=taeda.float64)
    x = dense.to_sparse(layout=getattr(taeda, layout)).requires_grad_()
    weights = taeda.arange(6, dtype=taeda.float64).reshape(2, 3)
    assert gradcheck(lambda s: s.to_dense() * weights, (x,), masked=True)
    assert gradcheck(lambda s: s * 3.0, (x,))
    assert gradcheck(lambda s, d: (s.to_dense() * d).sum(), (x, dense.clone().requires_grad_()))
    wrong = function_with(WRONG["factor"])
    with pytest.raises(GradcheckError, match="input 0"):
        gradcheck(lambda s: wrong(s.to_dense()), (x,))


def test_a_sparse_input_with_two_elements_at_one_place_is_refused():
    twice = taeda.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), dtype=taeda.float64).requires_grad_()
    with pytest.raises(ValueError, match="input 0 has several elements at one place"):
        gradcheck(lambda s: s.to_dense(), (twice,))
