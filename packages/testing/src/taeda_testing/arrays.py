"""Random input arrays over shapes, dtypes, values and memory layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = ((), (1,), (5,), (0,), (2, 3), (3, 1, 4), (2, 0, 3))


def random_array(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: float = -4, high: float = 4
) -> np.ndarray:
    """Values of ``dtype`` in [low, high]; unsigned types start at 0, integers stay away from overflow."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        start = max(0, int(np.ceil(low))) if kind == "u" else int(np.ceil(low))
        return rng.integers(start, max(start + 1, int(high) + 1), shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values).astype(dtype)


def all_different(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values that all differ: which of equal ones is taken is not part of every contract."""
    return rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)


def widest(array: np.ndarray) -> np.ndarray:
    """In float64 or complex128, in which references are computed."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def layouts(array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The same values row-major, and, where the shape allows, transposed, reversed, strided and broadcast."""
    out = [("contiguous", array)]
    if array.ndim >= 2:
        out.append(("transposed", np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1)))
    if array.ndim >= 1 and array.size:
        out.append(("reversed", np.ascontiguousarray(array[::-1])[::-1]))
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        out.append(("strided", wide[..., ::2]))
    return out


def in_double(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A reference that computes in the widest dtype, and gives its result in that of its first argument."""

    def call(*args: Any, **kwargs: Any) -> np.ndarray:
        wide = [widest(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a for a in args]
        found, dtype = np.asarray(function(*wide, **kwargs)), args[0].dtype
        return found.astype(dtype if found.dtype.kind == "c" else np.zeros(0, dtype).real.dtype)

    return call


def p_norm(x: np.ndarray, p: float, axis: int = -1, keepdims: bool = False) -> np.ndarray:
    """The p-norm along a dimension."""
    if np.isinf(p):
        return np.abs(x).max(axis, keepdims=keepdims)
    if p == 0:
        return (x != 0).sum(axis, keepdims=keepdims)
    return (np.abs(x) ** p).sum(axis, keepdims=keepdims) ** (1 / p)


def p_distance(
    a: np.ndarray, b: np.ndarray, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> np.ndarray:
    """The p-norm of a - b + eps along the last dimension."""
    return p_norm(a - b + eps, p, keepdims=keepdim)
