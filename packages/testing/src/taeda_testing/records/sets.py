"""Records of distinct elements, and of whether two tensors agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS, REALS, OpRecord, Sample
from taeda_testing.wrong import misfit

_DTYPES = ("bool", *REALS)


def _record(name, reference, samples, dtypes, family="sort", **more):
    return OpRecord(name, reference, samples, dtypes, family=family, **more)


def _arrays(dtype: str, rng: np.random.Generator) -> Iterator[np.ndarray]:
    for shape in ((9,), (3, 4), (2, 2, 3), (1,), (), (0,), (2, 0)):
        yield np.asarray(random_array(rng, shape, "int8", 0, 3)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        yield np.array([np.nan, 1, np.nan, -np.inf, 1, np.inf], dtype)
        yield np.array([np.nan, np.nan, 0.0, -0.0, 1], dtype)


def _plain(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    return (Sample((x,)) for x in _arrays(dtype, rng))


def _options(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for x in _arrays(dtype, rng):
        for inverse in (False, True):
            for counts in (False, True):
                yield Sample((x,), {"return_inverse": inverse, "return_counts": counts})
        if x.size and not np.isnan(x).any():
            for dim in range(-1, x.ndim if x.ndim else -1):
                yield Sample((x,), {"return_inverse": True, "return_counts": True, "dim": dim})


def _slices(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield from _options(dtype, rng)
    x = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [1, 0]], dtype)
    yield Sample((x,), {"return_inverse": True, "return_counts": True, "dim": 0})
    yield Sample((x[:, 0].copy(),), {"return_counts": True})


def _all(x):
    values, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
    return values, first, inverse.reshape(x.shape), counts


def _asked(found, inverse, counts):
    kept = [found[0], *found[1:2] * inverse, *found[2:] * counts]
    return kept if len(kept) > 1 else kept[0]


def _unique(x, return_inverse=False, return_counts=False, dim=None):
    if dim is None:
        values, _, inverse, counts = _all(x)
    else:
        values, inverse, counts = np.unique(x, False, True, True, axis=dim)
    return _asked(
        [values, inverse.reshape(x.shape if dim is None else -1), counts], return_inverse, return_counts
    )


def _runs(x, dim=None):
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    starts = [i for i in range(len(rows)) if i == 0 or not np.array_equal(rows[i], rows[i - 1])]
    lengths = np.diff([*starts, len(rows)]).astype(np.int64) if starts else np.zeros(0, np.int64)
    inverse = np.repeat(np.arange(len(starts)), lengths).astype(np.int64)
    values = rows[np.int64(starts)]
    return [
        values if dim is None else np.moveaxis(values, 0, dim),
        inverse.reshape(x.shape if dim is None else -1),
        lengths,
    ]


def _consecutive(x, return_inverse=False, return_counts=False, dim=None):
    return _asked(_runs(x, dim), return_inverse, return_counts)


def _close(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4,), (2, 3), (), (0,)):
        x = random_array(rng, shape, dtype, 1, 4)
        for far in (0, 1e-6, 1e-3, 0.5):
            other = np.asarray(x + far, dtype)
            yield Sample((x, other))
            yield Sample((x, other), {"rtol": 0.0, "atol": 0.1})
            yield Sample((x, other, 1e-2, 0.0))
    one = np.array([1, np.nan, np.inf], dtype)
    yield Sample((one, one))
    yield Sample((one, one), {"equal_nan": True})
    yield Sample((one[2:], -one[2:]))
    yield Sample((one[:1], random_array(rng, (2, 3), dtype)), {"atol": 1.0})


def _twice(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4,), (2, 3), (), (0,), (2, 0)):
        x = random_array(rng, shape, dtype)
        yield Sample((x, x.copy()))
        yield Sample((x, np.asarray(x == 0).astype(dtype)))
        yield Sample((x, x[None]))
    x = random_array(rng, (2, 3), dtype)
    yield Sample((x, x.T.copy()))
    yield Sample((x, np.asfortranarray(x)))
    yield Sample((np.zeros((1, 3), dtype), np.zeros((2, 3), dtype)))
    if np.dtype(dtype).kind == "f":
        yield Sample((np.array([np.nan], dtype), np.array([np.nan], dtype)))
        yield Sample((np.array([0.0], dtype), np.array([-0.0], dtype)))


def _complex() -> Any:
    return misfit("", np.zeros(2, np.complex64), words=("complex",), error=(TypeError, RuntimeError))


RECORDS = [
    _record("allclose", np.allclose, _close, FLOATS, "compare", errors=(
        *misfit("allclose", (3,), (2,), words=("3", "2")),
        *misfit("allclose", (3,), (3,), -1.0, words=("rtol", "-1")),
    )),
    _record("equal", np.array_equal, _twice, ALL, "compare"),
    _record("unique", _unique, _options, _DTYPES, errors=(
        *_complex(), *misfit("unique", (2, 3), dim=2, words=("dim", "2"), error=IndexError)
    )),
    _record("unique_all", _all, _plain, _DTYPES, errors=_complex()),
    _record("unique_consecutive", _consecutive, _slices, ALL, errors=misfit(
        "", (2, 3), dim=2, words=("dim", "2"), error=IndexError
    )),
    _record("unique_consecutive_all", _runs, _plain, ALL, namespace="ops"),
]  # fmt: skip
