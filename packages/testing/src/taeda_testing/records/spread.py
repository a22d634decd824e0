"""Records of variances, standard deviations and pairs of extrema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import COMPLEX, FLOATS, REALS, OpRecord, Sample
from taeda_testing.sampling import reduction
from taeda_testing.wrong import misfit

_TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def _record(name, reference, samples, dtypes=FLOATS, **more):
    return OpRecord(name, reference, samples, dtypes, ("float64",), family="reduce", rtol=_TOLERANCE, **more)


def _spreads(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in reduction(empty=False)(dtype, rng):
        if np.size(sample.args[0]) > 1:
            yield sample
    x = random_array(rng, (3, 4), dtype)
    for options in ({"correction": 0}, {"correction": 2}, {"correction": 0.5}, {"unbiased": False}):
        yield Sample((x,), options)
        yield Sample((x,), {"dim": 1, **options})
    yield Sample((x, 0, False))
    yield Sample((x, [0, 1], False, True))
    yield Sample((x,), {"dim": (-1,), "keepdim": True, "correction": 0})
    yield Sample((x[:1],), {"dim": 0}, "one element, divided by 0")
    yield Sample((x[:, :0],), {"dim": 1}, "no element")


def _unbiased(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for unbiased in (False, True):
        yield Sample((random_array(rng, (3, 4), dtype), unbiased))


def _variance(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    axes = tuple(range(x.ndim)) if dim is None else tuple(np.atleast_1d(dim).tolist())
    n = int(np.prod([x.shape[i] for i in axes]))
    mean = np.sum(x, axis=axes, keepdims=True) / np.asarray(n, x.real.dtype)
    divisor = max(0, n - (int(unbiased) if correction is None else correction))
    squares = (np.abs(x - mean) ** 2).sum(axis=axes, keepdims=keepdim)
    return np.asarray(squares / np.asarray(divisor, squares.dtype)).astype(squares.dtype)


def _deviation(x, *args, **kwargs):
    return np.sqrt(_variance(x, *args, **kwargs))


def _with_mean(spread: Callable[..., Any]) -> Callable[..., Any]:
    def call(x, *args, **kwargs):
        names = dict(zip(("dim", "unbiased", "keepdim"), args, strict=False), **kwargs)
        dim = names.get("dim")
        axes = None if dim is None or isinstance(dim, bool) else tuple(np.atleast_1d(dim).tolist())
        total = np.asarray(np.sum(x, axis=axes, keepdims=names.get("keepdim", False)))
        return spread(x, *args, **kwargs), total / np.asarray(x.size // max(1, total.size), x.real.dtype)

    return call


def _extrema(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield from reduction(tuples=False, empty=False)(dtype, rng)
    if np.dtype(dtype).kind == "f":
        yield Sample((np.array([[1, np.nan], [np.inf, -2]], dtype),), {"dim": 1}, "special values")


def _both(x, dim=None, keepdim=False):
    return [np.asarray(f(x, axis=dim, keepdims=keepdim)) for f in (np.min, np.max)]


def _errors(inner: str) -> Any:
    return (
        *misfit(inner, (2, 3), 2, words=("dim", "2"), error=IndexError),
        *misfit(inner, np.zeros(3, np.int64), words=("int64",), error=(RuntimeError, TypeError)),
    )


RECORDS = [
    _record("aminmax", _both, _extrema, ("bool", *REALS), errors=(
        *misfit("aminmax", (2, 3), dim=2, words=("dim", "2"), error=IndexError),
        *misfit("aminmax", (0,), words=("self", "(0,)"), error=(RuntimeError, IndexError)),
    )),
    *(_record(name, reference, _unbiased) for name, reference in (
        ("std", _deviation), ("std_mean", _with_mean(_deviation)),
        ("var", _variance), ("var_mean", _with_mean(_variance)),
    )),
    _record("std", _deviation, _spreads, (*FLOATS, *COMPLEX), errors=_errors("std")),
    _record("std_mean", _with_mean(_deviation), _spreads, (*FLOATS, *COMPLEX), errors=_errors("std_mean")),
    _record("var", _variance, _spreads, (*FLOATS, *COMPLEX), out=True, errors=_errors("var")),
    _record("var_mean", _with_mean(_variance), _spreads, (*FLOATS, *COMPLEX), errors=_errors("var_mean")),
    _record("std", _deviation, lambda d, rng: [Sample((np.full(3, 2, d),))], second=False),
]  # fmt: skip
