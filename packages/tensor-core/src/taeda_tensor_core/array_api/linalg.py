"""The extension of linear algebra."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api._array import Array, as_array, plain
from taeda_tensor_core.array_api._elementwise import _FLOATING, _NUMERIC, _check, array_argument, both, matmul
from taeda_tensor_core.array_api._manipulation import axes_of, matrix_transpose
from taeda_tensor_core.array_api._reductions import _summed

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Tensor = core.Tensor
eig_result = namedtuple("eig_result", "eigenvalues eigenvectors")
eigh_result = namedtuple("eigh_result", "eigenvalues eigenvectors")
qr_result = namedtuple("qr_result", "Q R")
slogdet_result = namedtuple("slogdet_result", "sign logabsdet")
svd_result = namedtuple("svd_result", "U S Vh")


def _matrices(name: str, x: Any) -> Any:
    """Floating-point matrices as a tensor."""
    tensor = array_argument(name, "x", x)
    _check(name, tensor.dtype, _FLOATING)
    if tensor.ndim < 2:
        raise ValueError(f"{name}: found {tensor.ndim} dimensions, expected at least 2")
    return tensor


def _results(kind: Any, parts: Any) -> Any:
    return kind(*(as_array(part) for part in parts))


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular factors L of positive definite matrices L @ conj(L).mT, or the upper ones."""
    return as_array(core.linalg.cholesky(_matrices("cholesky", x), upper=upper))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of 3 elements along ``axis``."""
    a, b = both("cross", array_argument("cross", "x1", x1), array_argument("cross", "x2", x2))
    _check("cross", a.dtype, _NUMERIC)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross: found axes of {a.shape[axis]} and {b.shape[axis]} elements, expected 3")
    return as_array(core.linalg.cross(*core.broadcast_tensors(a, b), dim=axis))


def det(x: Array, /) -> Array:
    """Determinants."""
    return as_array(core.linalg.det(_matrices("det", x)))


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices, a view."""
    return as_array(core.diagonal(array_argument("diagonal", "x", x), offset, -2, -1))


def eig(x: Array, /) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    return _results(eig_result, core.linalg.eig(_matrices("eig", x)))


def eigvals(x: Array, /) -> Array:
    """Eigenvalues, complex."""
    return as_array(core.linalg.eigvals(_matrices("eigvals", x)))


def eigh(x: Array, /) -> Any:
    """Eigenvalues in order and eigenvectors of Hermitian matrices."""
    return _results(eigh_result, core.linalg.eigh(_matrices("eigh", x)))


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues in order of Hermitian matrices."""
    return as_array(core.linalg.eigvalsh(_matrices("eigvalsh", x)))


def inv(x: Array, /) -> Array:
    """Inverses."""
    return as_array(core.linalg.inv(_matrices("inv", x)))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norms of matrices: 1, -1, 2, -2, inf, -inf, "fro", "nuc"."""
    tensor = _matrices("matrix_norm", x)
    return as_array(core.linalg.matrix_norm(tensor, "fro" if ord is None else ord, keepdim=keepdims))


def matrix_power(x: Array, n: int, /) -> Array:
    """``n``-th powers of matrices."""
    return as_array(core.linalg.matrix_power(_matrices("matrix_power", x), n))


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """How many singular values are greater than ``rtol`` times the greatest."""
    tensor = _matrices("matrix_rank", x)
    values = core.linalg.svdvals(tensor)
    return as_array((values > _threshold(tensor, values, rtol)).sum(-1))


def _threshold(tensor: Any, values: Any, rtol: Any) -> Any:
    if rtol is None:
        rtol = max(tensor.shape[-2:]) * core.finfo(values.dtype).eps
    elif isinstance(rtol, Tensor):
        rtol = plain(rtol).to(values.dtype).unsqueeze(-1)
    greatest = core.amax(values, -1, keepdim=True) if values.shape[-1] else core.zeros((), dtype=values.dtype)
    return rtol * greatest


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """Pseudo-inverses; singular values of at most ``rtol`` times the greatest count as zero."""
    tensor = _matrices("pinv", x)
    if rtol is None:
        rtol = max(tensor.shape[-2:]) * core.finfo(tensor.dtype).eps
    return as_array(core.linalg.pinv(tensor, rtol=plain(rtol) if isinstance(rtol, Tensor) else rtol))


def outer(x1: Array, x2: Array, /) -> Array:
    """The products of every element of one vector with every one of another."""
    a, b = both("outer", array_argument("outer", "x1", x1), array_argument("outer", "x2", x2))
    _check("outer", a.dtype, _NUMERIC)
    return as_array(core.outer(a, b))


def qr(x: Array, /, *, mode: str = "reduced") -> Any:
    """Orthonormal and upper triangular factors; ``mode``: "reduced" or "complete"."""
    return _results(qr_result, core.linalg.qr(_matrices("qr", x), mode))


def slogdet(x: Array, /) -> Any:
    """Signs and logarithms of the sizes of determinants."""
    return _results(slogdet_result, core.linalg.slogdet(_matrices("slogdet", x)))


def solve(x1: Array, x2: Array, /) -> Array:
    """The ``X`` of x1 @ X = x2; ``x2`` of one dimension is a vector, else a stack of matrices."""
    a, b = both("solve", _matrices("solve", x1), array_argument("solve", "x2", x2))
    if b.ndim == 1:
        return as_array(core.linalg.solve(a, b.unsqueeze(-1)).squeeze(-1))
    batch = core.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])
    return as_array(core.linalg.solve(a, b))


def svd(x: Array, /, *, full_matrices: bool = True) -> Any:
    """Singular vectors and values."""
    return _results(svd_result, core.linalg.svd(_matrices("svd", x), full_matrices))


def svdvals(x: Array, /) -> Array:
    """Singular values."""
    return as_array(core.linalg.svdvals(_matrices("svdvals", x)))


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """Sums of products over axes: their number, or those of each array."""
    a, b = both("tensordot", array_argument("tensordot", "x1", x1), array_argument("tensordot", "x2", x2))
    _check("tensordot", a.dtype, _NUMERIC)
    return as_array(core.tensordot(a, b, axes))


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of diagonals, in the dtype of `sum`."""
    tensor = array_argument("trace", "x", x)
    _check("trace", tensor.dtype, _NUMERIC)
    return as_array(core.sum(core.diagonal(tensor, offset, -2, -1), -1, dtype=dtype or _summed(tensor.dtype)))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Sums of conj(x1) * x2 over ``axis``.

    Raises:
        ValueError: the axes have different sizes, or an axis counted from the start.
    """
    a, b = both("vecdot", array_argument("vecdot", "x1", x1), array_argument("vecdot", "x2", x2))
    _check("vecdot", a.dtype, _NUMERIC)
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(
            f"vecdot: found axes of {a.shape[axis]} and {b.shape[axis]} elements, expected as many"
        )
    a, b = core.broadcast_tensors(a, b)
    return as_array(core.sum(core.conj(a) * b, axis, dtype=a.dtype))


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Norms of vectors along axes, of all elements when ``axis`` is None."""
    tensor = array_argument("vector_norm", "x", x)
    _check("vector_norm", tensor.dtype, _FLOATING)
    axes = axes_of("vector_norm", tensor, axis)
    if not axes:
        return as_array(core.abs(tensor) if ord != 0 else (tensor != 0).to(core.abs(tensor).dtype))
    return as_array(core.linalg.vector_norm(tensor, ord, axes, keepdim=keepdims))
