"""Records of factorisations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from taeda_testing.matrices import batched, exact, hermitian, matrices, refused
from taeda_testing.record import Sample
from taeda_testing.wrong import misfit, wrong_call

_SQUARES = ((3, 3), (1, 1), (2, 4, 4), (2, 1, 3, 3), (0, 0), (0, 2, 2), (2, 0, 0), (20, 20))
_ANY = ((3, 3), (4, 2), (2, 4), (1, 1), (2, 3, 2), (0, 3), (3, 0), (2, 0, 0), (24, 20))


def _cholesky(a: np.ndarray, upper: bool = False) -> np.ndarray:
    lower = np.linalg.cholesky(a)
    return np.ascontiguousarray(lower.swapaxes(-1, -2).conj()) if upper else lower


def _positive(**kwargs: Any):
    """Positive definite matrices."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in _SQUARES:
            a = matrices(rng, shape, dtype)
            eye = np.eye(shape[-1], dtype=dtype)
            yield Sample((np.asarray(a @ a.swapaxes(-1, -2).conj() + eye).astype(dtype),), dict(kwargs))

    return samples


def _infos(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


def _shapes(shapes: Any, *rest: Any, **kwargs: Any):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in shapes:
            yield Sample((matrices(rng, shape, dtype), *rest), dict(kwargs))

    return samples


@batched
def _lu_factor(a):
    k = min(a.shape)
    if not k:
        return a, np.zeros(k, np.int32)
    factors, pivots = linalg.lu_factor(a)
    return factors, (pivots + 1).astype(np.int32)


@batched
def _lu(a):
    k = min(a.shape)
    if not k:
        return np.eye(a.shape[0], dtype=a.dtype), a[:, :k], a[:k]
    return tuple(part.astype(a.dtype) for part in linalg.lu(a))


def _unpacked(factors, pivots, unpack_data=True, unpack_pivots=True):
    @batched
    def parts(a, exchanges):
        k, rows = min(a.shape), np.arange(a.shape[0])
        for i, other in enumerate(exchanges):
            rows[[i, other - 1]] = rows[[other - 1, i]]
        order = np.eye(a.shape[0], dtype=a.dtype)[:, rows]
        return order, np.tril(a[:, :k], -1) + np.eye(a.shape[0], k, dtype=a.dtype), np.triu(a[:k])

    order, lower, upper = parts(factors, pivots)
    none = np.zeros(0, factors.dtype)
    return (order if unpack_pivots else none, *((lower, upper) if unpack_data else (none, none)))


def _factors(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (0, 2)):
        a = matrices(rng, shape, dtype)
        pivots = _lu_factor(a)[1]
        yield Sample((a, pivots))
    yield Sample((a, pivots, False), {}, "no factors")
    yield Sample((a, pivots, True, False))


def _pivots(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, n in (((3,), 3), ((2,), 4), ((2, 3), 3), ((0,), 2), ((0, 2), 2)):
        yield Sample((rng.integers(shape[-1] and 1, n + 1, shape).astype(dtype), n))


def _permutation(pivots, n):
    found = np.zeros((*pivots.shape[:-1], n), np.int64)
    for at in np.ndindex(pivots.shape[:-1]):
        rows = np.arange(n)
        for i, other in enumerate(pivots[at]):
            rows[[i, other - 1]] = rows[[other - 1, i]]
        found[at] = rows
    return found


@batched
def _ldl(a, hermitian=False):
    if not len(a):
        return a, np.zeros(0, np.int32)
    routine, size = linalg.get_lapack_funcs(
        ("hetrf", "hetrf_lwork") if hermitian and a.dtype.kind == "c" else ("sytrf", "sytrf_lwork"), (a,)
    )
    work = int(np.real(size(len(a), lower=1)[0]))
    factors, pivots, _ = routine(np.tril(a), lower=1, lwork=max(1, work))
    # LAPACK counts from 1, and SciPy leaves that.
    return np.tril(factors), pivots.astype(np.int32)


def _symmetric(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _SQUARES[:-1]:
        a = matrices(rng, shape, dtype)
        yield Sample((np.asarray(a + a.swapaxes(-1, -2)),))
        yield Sample((hermitian(rng, shape, dtype),), {"hermitian": True})


@batched
def _geqrf(a):
    if not a.size:
        return a, np.zeros(min(a.shape), a.dtype)
    return linalg.qr(a, mode="raw")[0]


def _qr(a, mode="reduced"):
    return tuple(np.linalg.qr(a, mode))


def _modes(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Those with a gradient; tensor-core's test_matrices.py has the others."""
    for shape in _ANY:
        a = matrices(rng, shape, dtype)
        yield Sample((a,))
        if shape[-2] <= shape[-1]:
            yield Sample((a, "complete"))


def _old_modes(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (4, 2), (2, 3)):
        yield Sample((matrices(rng, shape, dtype),))
        if shape[0] <= shape[1]:
            yield Sample((matrices(rng, shape, dtype), False))


@batched
def _reflected(a, tau):
    """The whole product of reflectors."""
    q = np.eye(a.shape[0], dtype=a.dtype)
    for i, factor in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1], a[i + 1 :, i]]).astype(a.dtype)
        q = q @ (np.eye(a.shape[0], dtype=a.dtype) - factor * np.outer(v, v.conj()))
    return q


def _product(a, tau):
    return _reflected(a, tau)[..., : a.shape[-1]]


def _ormqr(a, tau, c, left=True, transpose=False):
    q = _reflected(a, tau)
    q = q.swapaxes(-1, -2).conj() if transpose else q
    return q @ c if left else c @ q


def _reflectors(*beside: Any):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for lead, m, n, k in (((), 3, 3, 3), ((), 4, 2, 2), ((2,), 3, 2, 1), ((), 3, 2, 0), ((0,), 2, 2, 2)):
            yield Sample((matrices(rng, (*lead, m, n), dtype), matrices(rng, (*lead, k), dtype)))

    return samples


def _multiplied(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for lead, m, k in (((), 3, 3), ((), 4, 2), ((2,), 3, 2), ((0,), 2, 2)):
        v, tau = matrices(rng, (*lead, m, k), dtype), matrices(rng, (*lead, k), dtype)
        yield Sample((v, tau, matrices(rng, (*lead, m, 2), dtype)))
        yield Sample((v, tau, matrices(rng, (*lead, m, 2), dtype), True, True))
        yield Sample((v, tau, matrices(rng, (*lead, 2, m), dtype), False))
        yield Sample((v, tau, matrices(rng, (*lead, 2, m), dtype), False, True))


_NOT_POSITIVE = (wrong_call(RuntimeError, "positive-definite 2", np.diag([1.0, -1.0]).astype(np.float32)),)

RECORDS = [
    exact(
        "_pivots_to_permutation",
        _permutation,
        _pivots,
        ("int32",),
        namespace="ops",
        errors=misfit("_pivots", (3,), 3, words=("int32",)),
    ),
    exact(
        "cholesky", _cholesky, _positive(), out=True, errors=(*refused("cholesky", (2, 3)), *_NOT_POSITIVE)
    ),
    exact("geqrf", _geqrf, _shapes(_ANY), errors=refused("geqrf", (3,))),
    exact(
        "linalg_cholesky",
        _cholesky,
        _positive(upper=True),
        namespace="ops",
        out=True,
        errors=(*refused("linalg_cholesky", (2, 3)), *_NOT_POSITIVE),
    ),
    exact(
        "linalg_cholesky_ex",
        lambda a: (_cholesky(a), _infos(a)),
        _positive(),
        namespace="ops",
        errors=refused("linalg_cholesky_ex", (2, 3)),
    ),
    exact(
        "linalg_householder_product",
        _product,
        _reflectors(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=(
            *refused("linalg_householder_product", (3,), (3,)),
            *misfit("tau", (3, 2), (3,), words=("3",)),
            *misfit("input", (2, 3), (2,), words=("(2, 3)",)),
        ),
    ),
    exact(
        "linalg_ldl_factor", _ldl, _symmetric, namespace="ops", errors=refused("linalg_ldl_factor", (2, 3))
    ),
    exact(
        "linalg_ldl_factor_ex",
        lambda a, hermitian=False: (*_ldl(a, hermitian=hermitian), _infos(a)),
        _symmetric,
        namespace="ops",
        errors=refused("linalg_ldl_factor_ex", (2, 3)),
    ),
    exact(
        "linalg_lu",
        _lu,
        _shapes(_ANY),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=(*refused("linalg_lu", (3,)), *misfit("pivot", (2, 2), words=("False",), pivot=False)),
    ),
    exact(
        "linalg_lu_factor",
        _lu_factor,
        _shapes(_ANY),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=(
            *refused("linalg_lu_factor", (3,)),
            *misfit("linalg_lu_factor", (2, 2), words=("U[1,1]",), error=RuntimeError),
        ),
    ),
    exact(
        "linalg_lu_factor_ex",
        lambda a: (*_lu_factor(a), _infos(a)),
        _shapes(_ANY),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("linalg_lu_factor_ex", (3,)),
    ),
    exact(
        "linalg_qr",
        _qr,
        _modes,
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=(*refused("linalg_qr", (3,)), *misfit("linalg_qr", (2, 2), "full", words=("mode", "full"))),
    ),
    exact(
        "lu_unpack",
        _unpacked,
        _factors,
        differentiable=True,
        errors=misfit("lu_unpack", (3, 3), (3,), words=("LU_pivots", "int32")),
    ),
    exact(
        "orgqr",
        _product,
        _reflectors(),
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("orgqr", (3, 2), (3,), words=("3",)),
    ),
    exact(
        "ormqr",
        _ormqr,
        _multiplied,
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("ormqr", (3, 2), (2,), (2, 2), words=("input3", "(2, 2)")),
    ),
    exact(
        "qr",
        lambda a, some=True: _qr(a, "reduced" if some else "complete"),
        _old_modes,
        differentiable=True,
        cancels=True,
        errors=refused("qr", (3,)),
    ),
]
