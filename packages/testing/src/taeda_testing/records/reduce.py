"""Records of reductions and scans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, COMPLEX, FLOATS, NUMBERS, REALS, OpRecord, Sample
from taeda_testing.sampling import reduction, with_axis

_GRAD = ("float64",)


def _wide(x: np.ndarray) -> Any:
    return np.int64 if x.dtype.kind in "biu" and x.dtype != np.uint64 else x.dtype


def _summed(function):
    """Integers and bool are summed in int64, uint64 in itself."""

    def call(x: np.ndarray, dim=None, keepdim=False):
        dtype = _wide(x)
        return np.asarray(function(x, axis=dim, keepdims=keepdim, dtype=dtype))

    return call


def _scan(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (3, 4, 2), (0, 3)):
        for dim in range(-1, len(shape)):
            yield Sample((random_array(rng, shape, dtype, -2, 2),), {"dim": dim})


def _scanned(function):
    def call(x: np.ndarray, dim: int) -> np.ndarray:
        return function(x, axis=dim, dtype=_wide(x))

    return call


def _arg(function):
    def call(x: np.ndarray, dim=None, keepdim=False):
        return np.asarray(function(x, axis=dim, keepdims=keepdim), np.int64)

    return call


def _zeros(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Factors that are zero, where the derivative of a product is no quotient."""
    for factors in ([2, 0, 3], [0, 0, 3], [[1, 0], [2, 3]]):
        for dim in (0, -1):
            yield Sample((np.array(factors, dtype),), {"dim": dim})


def _typed(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Sums in a dtype that is asked for, which the elements are converted to first."""
    x = random_array(rng, (2, 3), dtype)
    for wanted in ("float64", "float32"):
        yield Sample((x,), {"dim": 1, "dtype": np.dtype(wanted)}, "" if wanted == dtype else "another dtype")


def _in_dtype(function):
    def call(x: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
        return np.asarray(function(x.astype(dtype), axis=dim, dtype=dtype))

    return call


def _special(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """NaN wins over everything, and of equal extrema the first."""
    for values in ([1, np.nan, np.inf, np.nan], [-np.inf, np.inf, -np.inf, np.inf], [2, -1, 2, -1]):
        yield Sample((np.array(values, dtype),), {}, "special values")
        yield Sample((np.array([values], dtype),), {"dim": 1, "keepdim": True}, "special values")


_SPREAD = {"float32": 1e-4, "float64": 1e-9}


def _reduce(name, reference, samples, dtypes, **more):
    return OpRecord(name, reference, samples, dtypes, family="reduce", rtol=_SPREAD, **more)


RECORDS = [
    _reduce("sum", _summed(np.sum), reduction(), ALL, gradient=_GRAD, out=True, atol={"float32": 1e-3}),
    _reduce("prod", _summed(np.prod), reduction(0.9, 1.1), ("bool", *NUMBERS), gradient=_GRAD, out=True),
    _reduce(
        "mean", with_axis(np.mean), reduction(empty=False), (*FLOATS, *COMPLEX), gradient=_GRAD, out=True
    ),
    _reduce("amax", with_axis(np.amax), reduction(empty=False), REALS, gradient=_GRAD, out=True),
    _reduce("amin", with_axis(np.amin), reduction(empty=False), REALS, gradient=_GRAD, out=True),
    _reduce("any", with_axis(np.any), reduction(), ALL, out=True),
    _reduce("all", with_axis(np.all), reduction(), ALL, out=True),
    _reduce("argmax", _arg(np.argmax), reduction(tuples=False, empty=False), REALS, out=True),
    _reduce("argmin", _arg(np.argmin), reduction(tuples=False, empty=False), REALS, out=True),
    _reduce("cumsum", _scanned(np.cumsum), _scan, NUMBERS, gradient=_GRAD, out=True, in_place=True),
    _reduce("cumprod", _scanned(np.cumprod), _scan, NUMBERS, gradient=_GRAD, out=True, in_place=True),
    OpRecord(
        "logsumexp",
        lambda x, dim, keepdim=False: np.asarray(special.logsumexp(x, axis=dim, keepdims=keepdim)).astype(
            x.dtype
        ),
        lambda dtype, rng: (s for s in reduction(empty=False)(dtype, rng) if "dim" in s.kwargs),
        FLOATS,
        gradient=_GRAD,
        out=True,
        family="reduce",
    ),
    _reduce("prod", _summed(np.prod), _zeros, NUMBERS, gradient=_GRAD),
    _reduce("cumprod", _scanned(np.cumprod), _zeros, NUMBERS, gradient=_GRAD),
    *(
        _reduce(name, _in_dtype(reference), _typed, ("bool", *REALS), gradient=_GRAD)
        for name, reference in (
            ("sum", np.sum),
            ("prod", np.prod),
            (
                "mean",
                lambda x, axis, dtype: np.sum(x, axis=axis, dtype=dtype) / np.asarray(x.shape[axis], dtype),
            ),
            ("cumsum", np.cumsum),
            ("cumprod", np.cumprod),
        )
    ),
    *(
        _reduce(name, with_axis(reference), _special, FLOATS)
        for name, reference in (("amax", np.amax), ("amin", np.amin))
    ),
    *(
        _reduce(name, _arg(reference), _special, FLOATS)
        for name, reference in (("argmax", np.argmax), ("argmin", np.argmin))
    ),
]
