"""Jacobians, Hessians and their products against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_autograd import functional, gradcheck
from taeda_autograd.functional import _construct_standard_basis_for, hessian, hvp, jacobian, jvp, vhp, vjp

RNG = np.random.default_rng(7)
A, V = RNG.standard_normal((3, 4)), RNG.standard_normal(4)
MATRIX = taeda.tensor(A)


def linear(x):
    return MATRIX @ x


def cubic(x):
    return (x**3).sum() + x.prod()


def tensor(values):
    return taeda.tensor(np.asarray(values, dtype=np.float64))


def close(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def cubic_hessian(v):
    out = np.diag(6 * v)
    for i in range(len(v)):
        for j in range(len(v)):
            if i != j:
                out[i, j] = np.prod([v[k] for k in range(len(v)) if k not in (i, j)])
    return out


def test_jacobian_of_a_linear_map():
    close(jacobian(linear, tensor(V)), A)


def test_jacobian_of_several_inputs_and_outputs():
    found = jacobian(lambda a, b: (a * b, a.sum()), (tensor([1.0, 2]), tensor([3.0, 4])))
    close(found[0][0], np.diag([3.0, 4]))
    close(found[0][1], np.diag([1.0, 2]))
    close(found[1][0], [1, 1])
    close(found[1][1], [0, 0])


def test_jacobian_has_the_shapes_of_output_and_input():
    assert tuple(jacobian(lambda x: x.reshape(3, 2), tensor(np.ones((2, 3)))).shape) == (3, 2, 2, 3)


def test_hessian():
    close(hessian(cubic, tensor(V)), cubic_hessian(V))


def test_hessian_of_two_inputs():
    found = hessian(lambda a, b: (a * a * b).sum(), (tensor([2.0]), tensor([5.0])))
    assert [[found[i][j].item() for j in (0, 1)] for i in (0, 1)] == [[10, 4], [4, 0]]


def test_products():
    w, v = RNG.standard_normal(3), RNG.standard_normal(4)
    value, product = vjp(linear, tensor(V), tensor(w))
    close(value, A @ V)
    close(product, w @ A)
    value, product = jvp(linear, tensor(V), tensor(v))
    close(value, A @ V)
    close(product, A @ v)
    assert vhp.__name__ == "vhp"
    for function in (hvp, vhp):
        value, product = function(cubic, tensor(V), tensor(v))
        close(value, (V**3).sum() + V.prod())
        close(product, cubic_hessian(V) @ v)


def test_results_are_differentiable_when_asked():
    assert not jacobian(lambda x: x**2, tensor([1.0, 2])).requires_grad
    x = tensor([1.0, 2.0]).requires_grad_()
    assert gradcheck(lambda t: jacobian(lambda s: s**3, t, create_graph=True), x)
    assert gradcheck(lambda t: hessian(lambda s: (s**4).sum(), t, create_graph=True), x)
    assert gradcheck(lambda t: jvp(lambda s: s**3, t, taeda.ones_like(t), create_graph=True)[1], x)


def test_inputs_stay_as_they_are():
    x = tensor([1.0, 2.0])
    hessian(cubic, x)
    assert not x.requires_grad and x.grad is None


def test_strict():
    x = tensor([1.0, 2.0])
    close(jacobian(lambda t: taeda.ones(2, dtype=taeda.float64), x), np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="strict"):
        jacobian(lambda t: taeda.ones(2, dtype=taeda.float64), x, strict=True)


@pytest.mark.parametrize("product", [vjp, jvp, jacobian])
def test_strict_derivatives_that_are_constant(product):
    x = tensor([1.0, 2.0])
    given = () if product is jacobian else (x,)
    with pytest.raises(RuntimeError, match=f"{product.__name__}: a derivative is independent of the inputs"):
        product(lambda t: t * 3, x, *given, create_graph=True, strict=True)
    product(lambda t: t * 3, x, *given, strict=True)
    product(lambda t: t**3, x, *given, create_graph=True, strict=True)


def test_wrong_arguments():
    x = tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="one element"):
        hessian(lambda t: t, x)
    with pytest.raises(RuntimeError, match="one element"):
        hvp(lambda t: t, x, x)
    with pytest.raises(TypeError, match="vjp"):
        vjp(lambda t: 3, x)
    with pytest.raises(TypeError, match="jacobian"):
        jacobian(cubic, 3.0)
    with pytest.raises(RuntimeError, match="shape"):
        vjp(linear, x[[0, 0, 1, 1]], x)
    with pytest.raises(TypeError, match="hessian: result of 'func': item 1 is str"):
        hessian(lambda t: (t.sum(), "words"), x)
    with pytest.raises(RuntimeError, match="one element"):
        hessian(lambda t: (t.sum(), t.sum()), x)


def total(x):
    return (x**3).sum()


@pytest.mark.parametrize("product", [vjp, jvp, hvp, vhp])
def test_vectors_that_do_not_fit(product):
    func = (lambda x: x**3) if product in (vjp, jvp) else total
    x = tensor([1.0, 2.0])
    name = product.__name__
    with pytest.raises(RuntimeError, match=f"{name}: argument 'v' may be left out only where .* one element"):
        product(func, x)
    with pytest.raises(
        RuntimeError, match=f"{name}: argument 'v' has 2 tensors, expected one for each of the 1"
    ):
        product(func, x, (x, x))
    with pytest.raises(RuntimeError, match=f"{name}: argument 'v' has invalid size: item 0 is of shape"):
        product(func, x, x[:1])
    with pytest.raises(TypeError, match=f"{name}: argument 'v'"):
        product(func, x, "v")
    close(product(func, x[:1])[1], product(func, x[:1], taeda.ones(1, dtype=x.dtype))[1])


def test_unit_vectors_of_several_tensors():
    first, second = _construct_standard_basis_for((taeda.ones(2), taeda.ones(3, dtype=taeda.float64)), (2, 3))
    np.testing.assert_array_equal(np.concatenate([first, second], 1), np.eye(5))
    assert second.dtype is taeda.float64


def test_helpers_that_libraries_continue_with():
    """Marks of tuples, inputs for gradients, results without history, gradients of what has some."""
    x = taeda.ones(2, requires_grad=True)
    assert functional._as_tuple(x) == (False, (x,)) and functional._as_tuple((x,))[0]
    with pytest.raises(TypeError, match="argument 'v'"):
        functional._as_tuple(3, "v", "hvp")
    assert functional._tuple_postprocess((x,), False) is x
    assert functional._tuple_postprocess(((x,),), (False, False)) is x
    assert functional._tuple_postprocess(((x,),), (True, True)) == ((x,),)
    (fresh,) = functional._grad_preprocess((x,), create_graph=False, need_graph=True)
    assert fresh.is_leaf and fresh.requires_grad and fresh is not x
    ((plain,),) = functional._grad_postprocess((((x * 2),),), create_graph=False)
    assert not plain.requires_grad
    assert functional._autograd_grad((taeda.ones(2),), (x,)) == (None,)
    (found,) = functional._autograd_grad((x * 3, taeda.ones(2)), (x,), (taeda.ones(2), taeda.ones(2)))
    assert found.tolist() == [3.0, 3.0]


Z = [1 + 2j, -0.5 + 0.25j]


def test_jacobian_of_complex_numbers():
    z = np.asarray(Z)
    forward = {"vectorize": True, "strategy": "forward-mode"}
    x = taeda.tensor(Z, dtype=taeda.complex128)
    cases = [  # function, derivative by the real part, gradient d/dRe + i d/dIm of the result's real part
        (lambda t: t**3, 3 * z**2, np.conj(3 * z**2)),
        (lambda t: (t * t.conj()).real, 2 * z.real, 2 * z),
        (lambda t: t.real * t, 2 * z.real + 1j * z.imag, 2 * z.real),
    ]
    for f, by_real, gradient in cases:
        found = jacobian(f, x, **forward)
        assert found.dtype == f(x).dtype
        close(found, np.diag(by_real))
        close(jacobian(f, x, vectorize=True), np.diag(gradient))
    with pytest.raises(RuntimeError, match="real scalar"):
        jacobian(cases[0][0], x)
    both = jacobian(lambda a, b: (a.sum() * b, a.real), (x, tensor([2.0])), **forward)
    assert [[tuple(part.shape) for part in row] for row in both] == [[(1, 2), (1, 1)], [(2, 2), (2, 1)]]
    close(both[0][0], [[2, 2]])
    close(both[0][1], [[z.sum()]])
    close(both[1][0], np.eye(2))
    close(both[1][1], np.zeros((2, 1)))


def test_hessian_of_complex_numbers():
    z = taeda.tensor([1 + 2j], dtype=taeda.complex128)
    # The gradient of |z|^2 Re z is |z|^2 + 2 z Re z: by the real part 2 Re z + 2 z + 2 Re z.
    found = hessian(
        lambda t: ((t * t.conj()).real * t.real).sum(),
        z,
        vectorize=True,
        outer_jacobian_strategy="forward-mode",
    )
    close(found, [[6 + 4j]])


def test_jacobian_of_complex_numbers_is_differentiable():
    z = taeda.tensor([1 + 2j], dtype=taeda.complex128, requires_grad=True)
    found = jacobian(lambda t: t**3, z, create_graph=True, vectorize=True, strategy="forward-mode")
    found.real.sum().backward()
    close(z.grad, np.conj(6 * np.asarray([1 + 2j])))
