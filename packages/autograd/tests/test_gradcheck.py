"""The checkers find wrong formulas; functional derivatives agree with mathematics."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, GradcheckError, functional, gradcheck, gradgradcheck


class WrongFirst(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 2.01


class WrongSecond(Function):
    """The first derivative is right; its own derivative is cut off."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0].detach() ** 2 * 3)


def test_wrong_formulas_are_found(make):
    x = make(3)
    with pytest.raises(GradcheckError):
        gradcheck(WrongFirst.apply, (x,))
    assert not gradcheck(WrongFirst.apply, (x,), raise_exception=False)
    assert gradcheck(WrongSecond.apply, (x,))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongSecond.apply, (x,))


def test_what_cannot_be_checked_is_refused(make):
    with pytest.raises((ValueError, GradcheckError), match=r"requires_grad|require"):
        gradcheck(taeda.exp, (make(3, requires_grad=False),))


def test_jacobian_and_hessian_of_a_quadratic(make):
    a = make(3, 3, requires_grad=False)
    x = make(3, requires_grad=False)
    matrix = a.numpy()
    np.testing.assert_allclose(functional.jacobian(lambda v: a @ v, x).numpy(), matrix, rtol=1e-12)
    h = functional.hessian(lambda v: v @ (a @ v), x)
    np.testing.assert_allclose(h.numpy(), matrix + matrix.T, rtol=1e-12)


def test_products_with_the_jacobian(make):
    a, x, v, w = (make(*s, requires_grad=False) for s in ((2, 3), (3,), (2,), (3,)))

    def f(z):
        return (a @ z).sin()

    jacobian = np.cos(a.numpy() @ x.numpy())[:, None] * a.numpy()
    value, product = functional.vjp(f, x, v)
    np.testing.assert_allclose(value.numpy(), np.sin(a.numpy() @ x.numpy()), rtol=1e-12)
    np.testing.assert_allclose(product.numpy(), v.numpy() @ jacobian, rtol=1e-12)
    np.testing.assert_allclose(functional.jvp(f, x, w)[1].numpy(), jacobian @ w.numpy(), rtol=1e-12)


def test_hessian_product(make):
    x, v = make(4, requires_grad=False), make(4, requires_grad=False)
    product = functional.hvp(lambda z: (z**3).sum(), x, v)[1]
    np.testing.assert_allclose(product.numpy(), 6 * x.numpy() * v.numpy(), rtol=1e-12)
