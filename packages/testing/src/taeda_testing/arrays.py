"""Random input arrays over shapes, dtypes, values and memory layouts."""

from __future__ import annotations

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
