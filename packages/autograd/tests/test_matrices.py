"""Gradients of factorisations that records cannot check: of functions that do not depend on a choice of vectors."""

import numpy as np
import pytest

import taeda_autograd as autograd
import taeda_tensor_core as tc
from taeda_autograd import gradcheck, gradgradcheck

linalg = tc.linalg
SEED = 20261122
SHAPES = [(3, 3), (2, 3, 3)]
RECTANGLES = [(3, 3), (4, 2), (2, 4), (2, 3, 2)]
KINDS = ["float64", "complex128"]


def matrix(shape, kind):
    rng = np.random.default_rng([SEED, *shape])
    values = rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if kind == "complex128" else 0)
    values = values + np.eye(*shape[-2:]) * (2 + np.arange(shape[-1]))
    return tc.tensor(values.astype(kind)).requires_grad_(True)


def hermitian(a):
    return a + a.mH


def both(function, *tensors):
    assert gradcheck(function, tensors)
    assert gradgradcheck(function, tensors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(shape, kind, upper):
    both(lambda a: linalg.cholesky(a @ a.mH + tc.eye(3, dtype=a.dtype), upper=upper), matrix(shape, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_eigh(shape, kind):
    both(lambda a: linalg.eigvalsh(hermitian(a)), matrix(shape, kind))

    def invariant(a):
        values, vectors = linalg.eigh(hermitian(a))
        return values, vectors.abs(), vectors @ (values.unsqueeze(-1) ** 3 * vectors.mH)

    both(invariant, matrix(shape, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_eig(shape, kind):
    def invariant(a):
        values, vectors = linalg.eig(a)
        return values, vectors.abs(), vectors @ ((values**2).unsqueeze(-1) * linalg.inv(vectors))

    both(invariant, matrix(shape, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RECTANGLES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, kind, full):
    def invariant(a):
        u, s, vh = linalg.svd(a, full_matrices=full)
        k = s.shape[-1]
        u, vh = u[..., :k], vh[..., :k, :]
        return s, u.abs(), vh.abs(), u @ (s.unsqueeze(-1) ** 2 * vh)

    both(invariant, matrix(shape, kind))


@pytest.mark.parametrize("part", [0, 2])
def test_svd_by_one_side(part):
    both(lambda a: linalg.svd(a, full_matrices=False)[part].abs(), matrix((3, 2), "complex128"))


@pytest.mark.parametrize(
    "call",
    [
        lambda a: linalg.eigh(hermitian(a)).eigenvectors.real.sum(),
        lambda a: linalg.eig(a).eigenvectors.real.sum(),
        lambda a: linalg.svd(a).U.real.sum(),
    ],
)
def test_a_loss_that_depends_on_the_choice_of_vectors_is_refused(call):
    with pytest.raises(RuntimeError, match="up to a factor of size 1"):
        call(matrix((3, 3), "complex128")).backward()


@pytest.mark.parametrize("rank", [2, 1])
def test_the_gradient_of_a_singular_determinant_is_the_adjugate(rank):
    a = np.diag([1.0, 2.0, 0.0])[:, [1, 2, 0]]
    if rank == 1:
        a[1] = 0
    given = tc.tensor(a, requires_grad=True)
    linalg.det(given).backward()
    cofactors = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            minor = np.delete(np.delete(a, i, 0), j, 1)
            cofactors[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    np.testing.assert_allclose(given.grad.numpy(), cofactors, atol=1e-12)


def test_a_singular_matrix_in_a_batch_leaves_the_others_as_they_are():
    a = matrix((2, 3, 3), "float64").detach()
    alone = a.clone().requires_grad_(True)
    linalg.det(alone).sum().backward()
    a[1] = 0
    a.requires_grad_(True)
    linalg.det(a).sum().backward()
    np.testing.assert_allclose(a.grad[0].numpy(), alone.grad[0].numpy(), rtol=1e-12)
    assert not a.grad[1].any()


def test_modes_without_gradient_say_so():
    a = matrix((4, 2), "float64")
    with pytest.raises(RuntimeError, match="mode 'complete'"):
        linalg.qr(a, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="mode 'r'"):
        linalg.qr(a, "r").R.sum().backward()


def test_what_has_no_derivative_says_so():
    for call in (tc.geqrf, linalg.ldl_factor):
        with pytest.raises(NotImplementedError, match="has no derivative"):
            call(matrix((3, 3), "float64"))[0].sum().backward()
    factors, pivots = linalg.ldl_factor(tc.eye(2))
    solved = linalg.ldl_solve(factors.requires_grad_(True), pivots, tc.eye(2))
    with pytest.raises(NotImplementedError, match="ldl_solve: has no derivative"):
        solved.sum().backward()


def test_eigenvalues_alone_have_a_gradient():
    a = matrix((3, 3), "float64")
    (grad,) = autograd.grad(linalg.eigvals(a).real.sum(), a)
    np.testing.assert_allclose(grad.numpy(), np.eye(3), atol=1e-12)
