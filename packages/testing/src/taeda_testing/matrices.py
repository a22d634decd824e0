"""What the records of functions of matrices share: well-conditioned samples, references over batches, wrong calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from taeda_testing.record import FLOATS_AND_COMPLEX, ErrorSample, OpRecord
from taeda_testing.wrong import zeros

# Solutions amplify what is rounded by the condition of the matrices.
_NEAR = {
    "rtol": {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-9, "complex128": 1e-9},
    "atol": {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10},
}


def exact(
    name: str, reference: Callable[..., Any], samples: Any, dtypes: Any = FLOATS_AND_COMPLEX, **more: Any
) -> OpRecord:
    """A record of a function that takes no halves."""
    return OpRecord(name, reference, samples, dtypes, **{"half": "", **_NEAR, **more})


def matrices(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random matrices (or vectors) whose singular values are apart from each other and from 0."""
    values = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    if len(shape) > 1:
        k = min(shape[-2:])
        values = values + np.eye(*shape[-2:])[..., ::-1] * (2 + 0.7 * np.arange(shape[-1]))
        values = values / max(1.0, k / 4)
    return np.asarray(values).astype(dtype)


def hermitian(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Hermitian matrices whose eigenvalues are apart."""
    a = matrices(rng, shape, dtype)
    diagonal = np.eye(shape[-1]) * np.arange(shape[-1]) * 2
    return np.asarray((a + a.swapaxes(-1, -2).conj()) / 4 + diagonal).astype(dtype)


def batched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices, and of vectors beside them, over leading dimensions, which all arrays have."""

    @wraps(function)
    def call(first: np.ndarray, *others: Any, **kwargs: Any) -> Any:
        lead = first.shape[:-2]
        rows = lambda at: [o[at] if isinstance(o, np.ndarray) else o for o in (first, *others)]  # noqa: E731
        if 0 in lead:  # the shapes of one regular matrix
            one = [_regular(o, len(lead)) if isinstance(o, np.ndarray) else o for o in (first, *others)]
            found = function(*one, **kwargs)
            empty = lambda part: np.zeros((*lead, *np.shape(part)), np.asarray(part).dtype)  # noqa: E731
            return tuple(map(empty, found)) if isinstance(found, tuple) else empty(found)
        found = [function(*rows(at), **kwargs) for at in np.ndindex(lead)]
        if isinstance(found[0], tuple):
            return tuple(_stacked(part, lead) for part in zip(*found, strict=True))
        return _stacked(found, lead)

    return call


def _regular(array: np.ndarray, lead: int) -> np.ndarray:
    """One item of an empty batch: ones, with twos on the diagonal of a matrix."""
    shape = array.shape[lead:]
    return np.ones(shape, array.dtype) + (np.eye(*shape, dtype=array.dtype) if len(shape) == 2 else 0)


def _stacked(parts: Any, lead: tuple[int, ...]) -> np.ndarray:
    array = np.stack([np.asarray(p) for p in parts])
    return array.reshape(*lead, *array.shape[1:])


def refused(name: str, *shapes: tuple[int, ...]) -> tuple[ErrorSample, ...]:
    """Arguments of wrong shapes, and of dtypes that LAPACK does not know."""
    wrong = ErrorSample(tuple(zeros(*s) for s in shapes), {}, RuntimeError, (name, str(shapes[0])))
    square = [(2, 2), *((2,) if len(s) == 1 else (2, 2) for s in shapes[1:])]
    kinds = tuple(
        ErrorSample(
            tuple(zeros(*s, dtype=kind) for s in square), {}, RuntimeError, (name, np.dtype(kind).name)
        )
        for kind in (np.int64, np.float16)
    )
    return (wrong, *kinds)
