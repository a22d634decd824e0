"""Records of linear systems, inverses and determinants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from taeda_testing.matrices import batched, exact, hermitian, matrices, refused
from taeda_testing.record import Sample
from taeda_testing.records.factor import _ldl, _lu_factor
from taeda_testing.wrong import misfit, wrong_call, zeros

_SQUARES = ((3, 3), (1, 1), (2, 3, 3), (2, 1, 2, 2), (0, 0), (0, 2, 2), (2, 0, 0), (24, 24))


def _square(*rest: Any, **kwargs: Any):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in _SQUARES:
            yield Sample((matrices(rng, shape, dtype), *rest), dict(kwargs))

    return samples


def _det(a):
    return np.asarray(np.linalg.det(a)).astype(a.dtype)


def _slogdet(a):
    sign, logarithm = np.linalg.slogdet(a)
    return np.asarray(sign).astype(a.dtype), np.asarray(logarithm).astype(a.real.dtype)


def _logdet(a):
    sign, logarithm = _slogdet(a)
    if a.dtype.kind == "c":
        return np.asarray(np.log(sign) + logarithm).astype(a.dtype)
    return np.where(sign == -1, np.nan, logarithm).astype(a.dtype)


def _of_positive_determinant(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _square()(dtype, rng):
        (a,) = sample.args
        if a.size:
            negative = np.linalg.det(a).real < 0
            a[..., 0, :] *= np.where(negative, -1, 1)[..., None].astype(dtype)
        yield sample
    yield Sample((np.diag([1, -2]).astype(dtype),), {}, "NaN of real ones")


def _infos(a):
    return np.zeros(a.shape[:-2], np.int32)


def _is_vector(a, b):
    return b.ndim == 1 or b.shape == a.shape[:-1]


def _solve(a, b, left=True):
    if _is_vector(a, b):
        return np.linalg.solve(a, np.broadcast_to(b, a.shape[:-1])[..., None])[..., 0]
    if left:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def _systems(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (
        ((3, 3), (3, 2)),
        ((3, 3), (3,)),
        ((2, 3, 3), (2, 3)),
        ((2, 3, 3), (3,)),
        ((2, 3, 3), (3, 1)),
        ((2, 2), (3, 2, 1)),
        ((2, 1, 2, 2), (3, 2, 2)),
        ((0, 0), (0, 2)),
        ((0, 0), (0,)),
        ((0, 2, 2), (0, 2, 1)),
        ((2, 2), (2, 0)),
        ((20, 20), (20, 3)),
    ):
        yield Sample((matrices(rng, a, dtype), matrices(rng, b, dtype)))
    yield Sample(
        (matrices(rng, (2, 3, 3), dtype), matrices(rng, (2, 3), dtype)[..., None].swapaxes(-1, -2)),
        {"left": False},
    )
    yield Sample((matrices(rng, (3, 3), dtype), matrices(rng, (2, 2, 3), dtype)), {"left": False})


def _lu_solve(factors, pivots, b, left=True, adjoint=False):
    a = _whole(factors, pivots)
    return _solve(a.swapaxes(-1, -2).conj() if adjoint else a, b, left)


@batched
def _whole(factors, pivots):
    """The matrix that LU factors are of."""
    a = (np.tril(factors, -1) + np.eye(len(factors))) @ np.triu(factors)
    for i in reversed(range(len(pivots))):
        a[[i, pivots[i] - 1]] = a[[pivots[i] - 1, i]]
    return a.astype(factors.dtype)


def _factored(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 2, 2), (2, 1)),
        ((2, 2), (3, 2, 2)),
        ((0, 0), (0, 2)),
        ((20, 20), (20, 2)),
    ):
        factors, pivots = _lu_factor(matrices(rng, a, dtype))
        for left in (True, False):
            for adjoint in (True, False):
                side = matrices(rng, b, dtype)
                side = side if left else np.ascontiguousarray(side.swapaxes(-1, -2))
                yield Sample((factors, pivots, side), {"left": left, "adjoint": adjoint})


def _old_factored(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1)), ((0, 0), (0, 2))):
        yield Sample((matrices(rng, b, dtype), *_lu_factor(matrices(rng, a, dtype))))


def _triangular(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - np.eye(a.shape[-1]) * a + np.eye(a.shape[-1])
    return _solve_matrices(a, b, left)


def _solve_matrices(a, b, left):
    if not left:
        return _solve_matrices(a.swapaxes(-1, -2), b.swapaxes(-1, -2), True).swapaxes(-1, -2)
    return np.linalg.solve(a, b).astype(b.dtype)


def _triangles(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 2, 2), (2, 1)),
        ((2, 2), (3, 2, 2)),
        ((0, 0), (0, 2)),
        ((2, 2), (2, 0)),
        ((20, 20), (20, 2)),
    ):
        for upper in (True, False):
            for left in (True, False):
                for unit in (True, False):
                    side = matrices(rng, b, dtype)
                    side = side if left else np.ascontiguousarray(side.swapaxes(-1, -2))
                    options = {"upper": upper, "left": left, "unitriangular": unit}
                    matrix = matrices(rng, a, dtype) + np.eye(a[-1], dtype=dtype) * 2
                    yield Sample((matrix.astype(dtype), side), options)


def _old_triangles(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                matrix = matrices(rng, (3, 3), dtype) + np.eye(3, dtype=dtype) * 2
                yield Sample((matrices(rng, (3, 2), dtype), matrix.astype(dtype), upper, transpose, unit))


def _old_triangular(b, a, upper=True, transpose=False, unitriangular=False):
    whole = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        whole = whole - np.eye(len(a)) * whole + np.eye(len(a))
    return np.linalg.solve(whole.T if transpose else whole, b).astype(b.dtype), a


def _from_factor(factor, upper):
    adjoint = factor.swapaxes(-1, -2).conj()
    if upper:
        return np.tril(adjoint) @ np.triu(factor)
    return np.tril(factor) @ np.triu(adjoint)


def _choleskys(with_side: bool):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2), (0, 0), (20, 20)):
            for upper in (False, True):
                factor = (matrices(rng, shape, dtype) + np.eye(shape[-1]) * 2).astype(dtype)
                side = (matrices(rng, (*shape[:-1], 2), dtype),) if with_side else ()
                yield Sample((*side, factor, upper))

    return samples


def _ldl_systems(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1)), ((0, 0), (0, 2)), ((20, 20), (20, 2))):
        matrix = matrices(rng, a, dtype)
        matrix = np.asarray(matrix + matrix.swapaxes(-1, -2))
        yield Sample((*_ldl(matrix), matrices(rng, b, dtype)))
        factors = _ldl(hermitian(rng, a, dtype), hermitian=True)
        yield Sample((*factors, matrices(rng, b, dtype)), {"hermitian": True})


@batched
def _ldl_solve(factors, pivots, b, hermitian=False):
    if not b.size:
        return b
    (routine,) = linalg.get_lapack_funcs(
        ("hetrs" if hermitian and b.dtype.kind == "c" else "sytrs",), (factors, b)
    )
    return routine(factors, pivots, b, lower=1)[0]


def _systems_of_any_shape(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (
        ((4, 2), (4, 2)),
        ((2, 4), (2, 1)),
        ((3, 3), (3,)),
        ((2, 3, 2), (2, 3, 2)),
        ((2, 3, 2), (2, 3)),
    ):
        for driver in (None, "gels", "gelsd", "gelss"):
            yield Sample((matrices(rng, a, dtype), matrices(rng, b, dtype)), {"driver": driver})


def _lstsq(a, b, rcond=None, driver=None):
    vector = _is_vector(a, b)
    side = b[..., None] if vector else b
    m, n = a.shape[-2:]
    solution = np.linalg.pinv(a) @ side
    solution = (solution[..., 0] if vector else solution).astype(a.dtype)
    none = np.zeros(0, a.real.dtype)
    ranks = np.full(a.shape[:-2], min(m, n)) if driver != "gels" else np.zeros(0, np.int64)
    values = np.linalg.svd(a, compute_uv=False).astype(a.real.dtype) if driver in ("gelsd", "gelss") else none
    rest = a @ (solution[..., None] if vector else solution) - side
    squares = (np.abs(rest) ** 2).sum(-2).astype(a.real.dtype) if m > n and driver is not None else none
    return solution, squares, ranks, values


def _pinv(a, atol=None, rtol=None, hermitian=False):
    return np.linalg.pinv(a).astype(a.dtype)


def _any_shape(*rest: Any, **kwargs: Any):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0, 3)):
            yield Sample((matrices(rng, shape, dtype), *rest), dict(kwargs))

    return samples


def _pinvs(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield from _any_shape()(dtype, rng)
    yield from _any_shape(atol=0.01)(dtype, rng)
    yield Sample((matrices(rng, (2, 3, 2), dtype), 0.001))
    yield Sample((matrices(rng, (2, 3, 2), dtype),), {"rtol": np.full(2, 0.001)})
    yield Sample((hermitian(rng, (3, 3), dtype) + np.eye(3, dtype=dtype),), {"hermitian": True}, "Hermitian")


def _tensors(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, ind in (((2, 3, 6), 2), ((6, 2, 3), 1), ((2, 2, 2, 2), 2)):
        rows = int(np.prod(shape[:ind]))
        yield Sample((matrices(rng, (rows, rows), dtype).reshape(shape), ind))


def _tensor_systems(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, side, dims in (
        ((2, 3, 6), (2, 3), None),
        ((2, 2, 2, 2), (2, 2), None),
        ((4, 2, 2), (4,), None),
    ):
        matrix = matrices(rng, (int(np.prod(side)),) * 2, dtype).reshape(shape)
        yield Sample((matrix, matrices(rng, side, dtype), dims))
    moved = matrices(rng, (6, 6), dtype).reshape(2, 3, 6).transpose(2, 0, 1)
    yield Sample((np.ascontiguousarray(moved), matrices(rng, (2, 3), dtype), (0,)))


_SINGULAR = zeros(2, 2)

RECORDS = [
    exact(
        "_linalg_det",
        lambda a: (_det(a), *_lu_factor(a)),
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("_linalg_det", (2, 3)),
    ),
    exact(
        "_linalg_pinv",
        _pinv,
        _any_shape(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("_linalg_pinv", (3,)),
    ),
    exact(
        "_linalg_slogdet",
        lambda a: (*_slogdet(a), *_lu_factor(a)),
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("_linalg_slogdet", (2, 3)),
    ),
    exact(
        "_linalg_solve_ex",
        lambda a, b, left=True: (_solve(a, b, left), *_lu_factor(a), _infos(a)),
        _systems,
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("_linalg_solve_ex", (2, 3), (2,)),
    ),
    exact(
        "cholesky_inverse",
        lambda f, upper=False: np.linalg.inv(_from_factor(f, upper)).astype(f.dtype),
        _choleskys(False),
        differentiable=True,
        cancels=True,
        out=True,
        errors=refused("cholesky_inverse", (2, 3)),
    ),
    exact(
        "cholesky_solve",
        lambda b, f, upper=False: np.linalg.solve(_from_factor(f, upper), b).astype(b.dtype),
        _choleskys(True),
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("cholesky_solve", (3, 2), (2, 2), words=("self", "(3, 2)", "2")),
    ),
    exact("det", _det, _square(), differentiable=True, cancels=True, errors=refused("det", (2, 3))),
    exact(
        "inverse",
        np.linalg.inv,
        _square(),
        differentiable=True,
        cancels=True,
        out=True,
        errors=(*refused("inverse", (2, 3)), wrong_call(RuntimeError, "inverse singular 1", _SINGULAR)),
    ),
    exact(
        "linalg_det",
        _det,
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=refused("linalg_det", (2, 3)),
    ),
    exact(
        "linalg_inv",
        np.linalg.inv,
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=(*refused("linalg_inv", (2, 3)), wrong_call(RuntimeError, "linalg_inv singular 1", _SINGULAR)),
    ),
    exact(
        "linalg_inv_ex",
        lambda a: (np.linalg.inv(a), _infos(a)),
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=(
            *refused("linalg_inv_ex", (2, 3)),
            wrong_call(RuntimeError, "linalg_inv_ex singular", _SINGULAR, check_errors=True),
        ),
    ),
    exact(
        "linalg_ldl_solve",
        _ldl_solve,
        _ldl_systems,
        namespace="ops",
        differentiable=True,
        constant=(0,),
        cancels=True,
        out=True,
        errors=misfit("linalg_ldl_solve", (2, 2), (2,), (2, 1), words=("pivots", "int32")),
    ),
    exact(
        "linalg_lstsq",
        _lstsq,
        _systems_of_any_shape,
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=(
            *refused("linalg_lstsq", (3,), (3,)),
            *misfit("linalg_lstsq", (3, 2), (2, 2), words=("b", "3", "(2, 2)")),
            *misfit("driver", (3, 2), (3, 2), words=("'qr'",), driver="qr"),
        ),
    ),
    exact(
        "linalg_lu_solve",
        _lu_solve,
        _factored,
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("linalg_lu_solve", (2, 2), (2,), (2, 1), words=("pivots", "int32")),
    ),
    exact(
        "linalg_pinv",
        _pinv,
        _pinvs,
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("linalg_pinv", (3,)),
    ),
    exact(
        "linalg_slogdet",
        _slogdet,
        _square(),
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("linalg_slogdet", (2, 3)),
    ),
    exact(
        "linalg_solve",
        _solve,
        _systems,
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=(
            *refused("linalg_solve", (2, 3), (2,)),
            *misfit("linalg_solve", (3, 3), (2, 2), words=("B", "3", "(2, 2)")),
            wrong_call(RuntimeError, "linalg_solve singular", _SINGULAR, zeros(2)),
        ),
    ),
    exact(
        "linalg_solve_ex",
        lambda a, b, left=True: (_solve(a, b, left), _infos(a)),
        _systems,
        namespace="ops",
        differentiable=True,
        cancels=True,
        errors=refused("linalg_solve_ex", (2, 3), (2,)),
    ),
    exact(
        "linalg_solve_triangular",
        _triangular,
        _triangles,
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=(
            *misfit("linalg_solve_triangular", (2, 3), (2, 2), words=("self", "(2, 3)"), upper=True),
            *misfit("linalg_solve_triangular", (2, 2), (3, 2), words=("B", "(3, 2)", "2"), upper=True),
        ),
    ),
    exact(
        "linalg_tensorinv",
        np.linalg.tensorinv,
        _tensors,
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=(
            *misfit("linalg_tensorinv", (2, 3), 1, words=("(2, 3)",)),
            *misfit("linalg_tensorinv", (2, 2), 0, words=("ind", "0")),
        ),
    ),
    exact(
        "linalg_tensorsolve",
        np.linalg.tensorsolve,
        _tensor_systems,
        namespace="ops",
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("linalg_tensorsolve", (2, 3), (3,), words=("(2, 3)",)),
    ),
    exact(
        "logdet",
        _logdet,
        _of_positive_determinant,
        differentiable=True,
        cancels=True,
        errors=refused("logdet", (2, 3)),
    ),
    exact(
        "lu_solve",
        lambda b, factors, pivots: _lu_solve(factors, pivots, b),
        _old_factored,
        differentiable=True,
        cancels=True,
        out=True,
        errors=misfit("lu_solve", (2, 1), (2, 2), (2,), words=("LU_pivots", "int32")),
    ),
    exact(
        "pinverse",
        lambda a: np.linalg.pinv(a).astype(a.dtype),
        _any_shape(),
        differentiable=True,
        cancels=True,
        errors=refused("pinverse", (3,)),
    ),
    exact(
        "slogdet", _slogdet, _square(), differentiable=True, cancels=True, errors=refused("slogdet", (2, 3))
    ),
    exact(
        "triangular_solve",
        _old_triangular,
        _old_triangles,
        differentiable=True,
        cancels=True,
        errors=misfit("triangular_solve", (2, 2), (2, 3), words=("A", "(2, 3)")),
    ),
]
