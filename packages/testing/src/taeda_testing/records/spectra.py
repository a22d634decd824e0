"""Records of eigenvalues and singular values.

Vectors are defined up to factors, of which every build of LAPACK chooses others, so their values are not compared here:
tensor-core's test_matrices.py puts the matrices together again, and autograd's checks gradients of what does not depend
on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.matrices import exact, hermitian, matrices, refused
from taeda_testing.record import Sample
from taeda_testing.wrong import misfit, wrong_call

_SQUARES = ((3, 3), (1, 1), (2, 3, 3), (0, 0), (0, 2, 2), (2, 0, 0), (18, 18))
_ANY = ((3, 3), (4, 2), (2, 4), (1, 1), (2, 3, 2), (0, 3), (3, 0), (2, 0, 2), (18, 17))


def _of(make: Any, shapes: Any, *rest: Any, note: str = "", **kwargs: Any):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in shapes:
            yield Sample((make(rng, shape, dtype), *rest), dict(kwargs), note)

    return samples


def _complex(array, a):
    return np.asarray(array).astype(np.result_type(a.dtype, np.complex64))


def _eig(a, vectors=True):
    values, found = np.linalg.eig(a)
    return _complex(values, a), _complex(found, a) if vectors else _complex(np.zeros(0), a)


def _eigh(a, uplo="L", vectors=True):
    values, found = np.linalg.eigh(a, uplo.upper())
    return values, found if vectors else np.zeros(0, a.dtype)


def _svd(a, full=False, vectors=True, driver=None):
    if not vectors:
        none = np.zeros(0, a.dtype)
        return none, np.linalg.svd(a, compute_uv=False), none
    return tuple(np.linalg.svd(a, full_matrices=full))


def _triangles(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _SQUARES:
        a = hermitian(rng, shape, dtype)
        for uplo, unread in (("L", np.triu), ("u", np.tril)):
            yield Sample((a + unread(np.ones(shape, dtype), 1 if uplo == "L" else -1), uplo))


def _decompositions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _ANY:
        for full in (False, True):
            if not full or min(shape[-2:]):  # vectors beyond the rank are anything
                a = matrices(rng, shape, dtype)
                square = shape[-1] == shape[-2]
                yield Sample((a, full)) if square or not full else Sample((a, False))


def _old(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2)):
        yield Sample((matrices(rng, shape, dtype),))
        yield Sample((matrices(rng, shape, dtype), True, False))


def _old_svd(a, some=True, compute_uv=True):
    if not compute_uv:
        (m, n), lead = a.shape[-2:], a.shape[:-2]
        return (
            np.zeros((*lead, m, m), a.dtype),
            np.linalg.svd(a, compute_uv=False),
            np.zeros((*lead, n, n), a.dtype),
        )
    u, s, vh = np.linalg.svd(a, full_matrices=not some)
    return u, s, vh.swapaxes(-1, -2).conj()


def _norm(p):
    return {None: 2, "nuc": "nuc", "fro": "fro"}.get(p, p)


def _cond(a, p=None):
    if not a.size:
        return np.zeros(a.shape[:-2], a.real.dtype)
    return np.asarray(np.linalg.cond(a, _norm(p))).astype(a.real.dtype)


def _conditions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        for shape in ((3, 3), (2, 3, 3), (0, 0)):
            given = (matrices(rng, shape, dtype), p) if p is not None else (matrices(rng, shape, dtype),)
            yield Sample(given, {}, "" if min(shape) else "zeros, of nothing")
    yield Sample((matrices(rng, (4, 2), dtype),))


def _ranks(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _ANY:
        a = matrices(rng, shape, dtype)
        yield Sample((a,))
        if min(shape[-2:]) > 1:
            a[..., 0] = a[..., 1] * 2  # of a rank less
            yield Sample((a,))
            yield Sample((a, 0.7))
            yield Sample((a,), {"atol": 0.7, "rtol": 0.1})
            yield Sample((a, np.full(shape[:-2], 0.7)))
            yield Sample((a,), {"atol": np.full(shape[:-2], 0.7)})
    yield Sample((hermitian(rng, (3, 3), dtype),), {"hermitian": True})


def _rank(a, tol=None, hermitian=False, atol=None, rtol=None):
    if not a.size:
        return np.zeros(a.shape[:-2], np.int64)
    values = np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)
    if tol is not None:
        atol, rtol = tol, 0.0
    if rtol is None:
        rtol = np.where(
            np.asarray(0 if atol is None else atol) > 0, 0, max(a.shape[-2:]) * np.finfo(a.dtype).eps
        )
    limit = np.maximum(0 if atol is None else atol, np.asarray(rtol) * values.max(-1))
    return np.asarray((values > np.asarray(limit)[..., None]).sum(-1))


def _vectors(name: str, reference: Any, samples: Any, **more: Any):
    """A record of what is defined up to factors."""
    return exact(name, reference, samples, values=False, **more)


_NAN = np.full((2, 2), np.nan, np.float32)
_VALUES = {"differentiable": True, "cancels": True, "namespace": "ops"}

RECORDS = [
    _vectors(
        "_linalg_eig",
        _eig,
        _of(matrices, _SQUARES),
        namespace="ops",
        needs=("complex",),
        errors=refused("_linalg_eig", (2, 3)),
    ),
    _vectors(
        "_linalg_eigh",
        _eigh,
        _of(hermitian, _SQUARES),
        namespace="ops",
        errors=refused("_linalg_eigh", (2, 3)),
    ),
    _vectors("_linalg_svd", _svd, _decompositions, namespace="ops", errors=refused("_linalg_svd", (3,))),
    exact(
        "linalg_cond",
        _cond,
        _conditions,
        out=True,
        **_VALUES,
        errors=(
            *refused("linalg_cond", (3,)),
            *misfit("linalg_cond", (2, 2), 3, words=("p", "3")),
            *misfit("linalg_cond", (2, 3), 1, words=("(2, 3)",)),
            *misfit("linalg_cond", (2, 2), "max", words=("p", "max")),
        ),
    ),
    _vectors(
        "linalg_eig",
        _eig,
        _of(matrices, _SQUARES),
        namespace="ops",
        needs=("complex",),
        errors=(*refused("linalg_eig", (2, 3)), wrong_call(RuntimeError, "linalg_eig NaN", _NAN)),
    ),
    _vectors(
        "linalg_eigh",
        _eigh,
        _triangles,
        namespace="ops",
        errors=(
            *refused("linalg_eigh", (2, 3)),
            wrong_call(RuntimeError, "linalg_eigh non-finite", _NAN),
            *misfit("linalg_eigh", (2, 2), "X", words=("UPLO", "X")),
        ),
    ),
    exact(
        "linalg_eigvals",
        lambda a: _complex(np.linalg.eigvals(a), a),
        _of(matrices, _SQUARES[:-1]),  # of larger ones the order differs
        out=True,
        needs=("complex",),
        **_VALUES,
        errors=(*refused("linalg_eigvals", (2, 3)), wrong_call(RuntimeError, "linalg_eigvals NaN", _NAN)),
    ),
    exact(
        "linalg_eigvalsh",
        lambda a, uplo="L": np.linalg.eigvalsh(a, uplo.upper()),
        _triangles,
        namespace="ops",
        out=True,
        errors=(*refused("linalg_eigvalsh", (2, 3)), wrong_call(RuntimeError, "non-finite", _NAN)),
    ),
    exact(
        "linalg_matrix_rank",
        _rank,
        _ranks,
        namespace="ops",
        out=True,
        errors=refused("linalg_matrix_rank", (3,)),
    ),
    _vectors(
        "linalg_svd",
        lambda a, full=True: _svd(a, full),
        _decompositions,
        namespace="ops",
        errors=(
            *refused("linalg_svd", (3,)),
            wrong_call(RuntimeError, "linalg_svd non-finite", _NAN),
            *misfit("linalg_svd", (2, 2), words=("driver", "fastest"), driver="fastest"),
        ),
    ),
    exact(
        "linalg_svdvals",
        lambda a: np.linalg.svd(a, compute_uv=False),
        _of(matrices, _ANY),
        out=True,
        **_VALUES,
        errors=(*refused("linalg_svdvals", (3,)), wrong_call(RuntimeError, "non-finite", _NAN)),
    ),
    _vectors("svd", _old_svd, _old, errors=refused("svd", (3,))),
]
