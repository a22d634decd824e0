"""Records of functions of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from scipy import linalg

from taeda_testing.arrays import random_array
from taeda_testing.matrices import batched, exact, matrices, refused
from taeda_testing.record import COMPLEX, FLOATS, FLOATS_AND_COMPLEX, NUMBERS, OpRecord, Sample
from taeda_testing.sampling import lists, sized
from taeda_testing.wrong import misfit, zeros

_INEXACT = ("int32", "int64", *FLOATS, *COMPLEX)


def _wide(dtype: str) -> str:
    return dtype if np.dtype(dtype).kind in "fc" else "float32"


def _cov(x, correction=1, fweights=None, aweights=None):
    found = np.cov(np.atleast_2d(x), ddof=correction, fweights=fweights, aweights=aweights)
    return np.asarray(found).astype(_wide(x.dtype.name))


def _covariances(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 5), (5,), (1, 4), (2, 2)):
        x = (rng.uniform(-9, 9, shape) + (1j * rng.uniform(-3, 3, shape) if dtype in COMPLEX else 0)).astype(
            dtype
        )
        n = shape[-1]
        counts, weights = (
            rng.integers(1, 4, n),
            rng.uniform(0.5, 2, n).astype(np.dtype(_wide(dtype)).type(0).real.dtype),
        )
        yield Sample((x,))
        yield Sample((x,), {"correction": 0})
        yield Sample((x,), {"fweights": counts})
        yield Sample((x,), {"aweights": weights})
        yield Sample((x,), {"fweights": counts, "aweights": weights, "correction": 0})


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 5), (5,), (2, 4)):
        x = rng.uniform(-9, 9, shape) + (1j * rng.uniform(-3, 3, shape) if dtype in COMPLEX else 0)
        yield Sample((x.astype(dtype),))


def _corrcoef(x):
    return np.asarray(np.corrcoef(x)).astype(_wide(x.dtype.name))


def _cross(a, b, dim=-1):
    d = dim % a.ndim
    a, b = np.broadcast_arrays(a, b)
    found = np.moveaxis(np.cross(np.moveaxis(a, d, -1), np.moveaxis(b, d, -1)), -1, d)
    return np.ascontiguousarray(found).astype(a.dtype)


def _vectors(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    calls = (((3,), (3,), {}), ((2, 3), (2, 3), {}), ((3, 2), (3, 2), {"dim": 0}), ((2, 3, 4), (1, 3, 1), {"dim": 1}),
             ((0, 3), (0, 3), {}))  # fmt: skip
    for a, b, options in calls:
        given = [
            rng.uniform(-3, 3, s) + (1j * rng.uniform(-3, 3, s) if dtype in COMPLEX else 0) for s in (a, b)
        ]
        yield Sample(tuple((np.abs(g) if dtype.startswith("u") else g).astype(dtype) for g in given), options)


def _first_of_three(a, b, dim=None):
    return _cross(a, b, a.shape.index(3) if dim is None else dim)


@batched
def _exp(a):
    return linalg.expm(a.astype(np.result_type(a.dtype, np.float64))).astype(a.dtype) if len(a) else a


def _scaled(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (1, 1), (2, 2, 2), (0, 0), (0, 2, 2)):
        for scale in (0.001, 0.05, 0.3, 1, 3):
            yield Sample((np.asarray(matrices(rng, shape, dtype) * scale / 2).astype(dtype),))
    yield Sample((np.asarray(matrices(rng, (20, 20), dtype) / 4).astype(dtype),))


def _norm(a, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    a = a if dtype is None else a.astype(dtype)
    found = np.linalg.norm(a, ord, tuple(dim), keepdims=keepdim)
    return np.asarray(found).astype(a.real.dtype)


def _any_norm(a, ord=None, dim=None, keepdim=False):
    if ord is None and dim is None:
        flat = np.linalg.norm(a.ravel())
        return np.asarray(np.full((1,) * a.ndim, flat) if keepdim else flat).astype(a.real.dtype)
    axis = (
        tuple(dim)
        if isinstance(dim, (list, tuple)) and len(dim) > 1
        else dim[0]
        if isinstance(dim, (list, tuple))
        else dim
    )
    return np.asarray(np.linalg.norm(a, ord, axis, keepdims=keepdim)).astype(a.real.dtype)


_ORDERS = ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)


def _norms(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for ord in _ORDERS:
        yield Sample((matrices(rng, (3, 2), dtype), ord))
        yield Sample((matrices(rng, (2, 3, 4), dtype), ord, (0, -1), True))
        yield Sample((matrices(rng, (2, 3, 3), dtype), ord), {"dim": (2, 1)})


def _all_norms(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for ord in (None, *_ORDERS):
        yield Sample((matrices(rng, (3, 2), dtype), ord))
        yield Sample((matrices(rng, (2, 3, 3), dtype), ord, (1, 2), True))
    for ord in (None, 2, 1, 3, np.inf, -np.inf):
        yield Sample((matrices(rng, (4,), dtype), ord))
        yield Sample((matrices(rng, (2, 3), dtype), ord), {"dim": 1})


def _powers(x, N=None):
    found = x[..., None].astype(np.int64 if x.dtype.kind in "iu" else x.dtype) ** np.arange(
        x.shape[-1] if N is None else N
    )
    return found.astype(np.int64 if x.dtype.kind in "iu" else x.dtype)


def _numbers_and_powers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in (
        (3,),
        (2, 3),
        (),
        (0,),
    ):  # the first of a record are made long elsewhere: not as many powers
        yield Sample((random_array(rng, shape, dtype, -3, 3),), {"N": 3}, "" if 0 not in shape else "empty")
    yield from sized(((3,),), ((2, 3),))(dtype, rng)


def _vander(x, N=None, increasing=False):
    found = _powers(x, N)
    return found if increasing else np.ascontiguousarray(found[:, ::-1])


_CHAINS = (
    ([(2, 3), (3, 4)],), ([(2, 3), (3, 1), (1, 4)],), ([(2, 3), (3, 4), (4, 2), (2, 5)],), ([(3,), (3, 2), (2, 4)],),
    ([(2, 3), (3, 2), (2,)],), ([(3,), (3,)],), ([(2, 0), (0, 3)],),
)  # fmt: skip

_FREE = {"differentiable": True, "cancels": True}

RECORDS = [
    OpRecord(
        "corrcoef",
        _corrcoef,
        _rows,
        ("int64", *FLOATS_AND_COMPLEX),
        **_FREE,
        half="",
        rtol={"float32": 1e-4, "complex64": 1e-4},
        errors=misfit("corrcoef", (2, 2, 2), words=("(2, 2, 2)",)),
    ),
    OpRecord(
        "cov",
        _cov,
        _covariances,
        ("int64", *FLOATS_AND_COMPLEX),
        **_FREE,
        half="",
        rtol={"float32": 1e-4, "complex64": 1e-4},
        atol={"float32": 1e-4, "complex64": 1e-4},
        errors=(
            *misfit("cov", (2, 2, 2), words=("(2, 2, 2)",)),
            *misfit("cov", (2, 3), words=("fweights", "integer"), fweights=zeros(3)),
            *misfit("cov", (2, 3), words=("aweights", "2", "3"), aweights=zeros(2)),
        ),
    ),
    OpRecord(
        "cross",
        _first_of_three,
        _vectors,
        NUMBERS,
        **_FREE,
        out=True,
        half="largest",
        errors=misfit("cross", (2, 2), (2, 2), words=("(2, 2)", "3")),
    ),
    OpRecord(
        "linalg_cross",
        _cross,
        _vectors,
        NUMBERS,
        **_FREE,
        out=True,
        half="largest",
        namespace="ops",
        errors=(
            *misfit("linalg_cross", (2, 2), (2, 2), words=("dim", "(2, 2)", "3")),
            *misfit("linalg_cross", (3,), (2, 3), words=("(2, 3)",)),
        ),
    ),
    OpRecord(
        "linalg_diagonal",
        lambda a, offset=0: np.diagonal(a, offset, -2, -1).copy(),
        sized(((3, 3),), ((2, 3, 4),)),
        ("int64", *FLOATS_AND_COMPLEX),
        differentiable=True,
        namespace="ops",
    ),
    exact(
        "linalg_matrix_exp",
        _exp,
        _scaled,
        **_FREE,
        out=True,
        namespace="ops",
        errors=refused("linalg_matrix_exp", (2, 3)),
    ),
    exact(
        "linalg_matrix_norm",
        _norm,
        _norms,
        **_FREE,
        out=True,
        namespace="ops",
        errors=(
            *misfit("linalg_matrix_norm", (3,), words=("(3,)", "2")),
            *misfit("linalg_matrix_norm", (2, 2), 3, words=("ord", "3")),
            *misfit("linalg_matrix_norm", (2, 2), "max", words=("ord", "max")),
            *misfit("linalg_matrix_norm", (2, 2), 1, words=("dim",), dim=[0, 0]),
        ),
    ),
    exact(
        "linalg_multi_dot",
        lambda chain: reduce(np.matmul, chain),
        lists(*_CHAINS),
        ("int64", *FLOATS_AND_COMPLEX),
        **_FREE,
        out=True,
        namespace="ops",
        errors=misfit("multi_dot", [zeros(2, 3), zeros(4, 2)], words=("(4, 2)", "(2, 3)")),
    ),
    exact(
        "linalg_norm",
        _any_norm,
        _all_norms,
        **_FREE,
        out=True,
        namespace="ops",
        errors=(
            *misfit("linalg_norm", (2, 2, 2), 2, words=("(2, 2, 2)",)),
            *misfit("linalg_norm", (2, 2), "max", words=("max",)),
        ),
    ),
    OpRecord(
        "linalg_vander",
        lambda x, N=None: _powers(np.atleast_1d(x), N),
        _numbers_and_powers,
        _INEXACT,
        **_FREE,
        half="largest",
        namespace="ops",
        errors=misfit("linalg_vander", (3,), words=("N", "1"), N=1),
        rtol={"float32": 1e-4, "complex64": 1e-4},
    ),
    OpRecord(
        "linalg_vecdot",
        lambda x, y, dim=-1: np.asarray((x.conj() * y).sum(dim, dtype=x.dtype)),
        sized(((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((2, 0), (2, 0))),
        ("int64", *FLOATS_AND_COMPLEX),
        **_FREE,
        out=True,
        namespace="ops",
        half="largest",
        rtol={"float32": 1e-4, "complex64": 1e-4},
        atol={"float32": 1e-4, "complex64": 1e-4},
        errors=misfit("", (2, 3), (2, 4), words=("3", "4")),
    ),
    exact("matrix_exp", _exp, _scaled, **_FREE, half="largest", errors=refused("matrix_exp", (2, 3))[:2]),
    OpRecord(
        "vander",
        _vander,
        sized(((3,), 2), ((2,), 4, True), ((3,), 1), ((3,), 3), ((3,),)),
        _INEXACT,
        **_FREE,
        half="largest",
        errors=misfit("vander", (2, 3), words=("(2, 3)", "1")),
        rtol={"float32": 1e-4, "complex64": 1e-4},
    ),
]
