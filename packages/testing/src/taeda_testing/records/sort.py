"""Records of sorting, counting and distinct elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import all_different, random_array
from taeda_testing.record import ALL, FLOATS, INTEGERS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import dimension, misfit, zeros

_ORDERED = tuple(d for d in REALS if d not in ("uint16", "uint32", "uint64"))


def _record(name, reference, samples, dtypes=_ORDERED, differentiable=False, **more):
    return OpRecord(name, reference, samples, dtypes, differentiable=differentiable, **more)


def _with_nan(rng: np.random.Generator, dtype: str) -> Iterator[np.ndarray]:
    if np.dtype(dtype).kind == "f":
        yield rng.permuted(np.array([[3, np.nan, -1, np.inf], [-np.inf, np.nan, np.nan, 0]], dtype), axis=1)


def _sorted(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((7,), (3, 5), (2, 3, 4), (1,), (0,), (2, 0)):
        x = random_array(rng, shape, dtype)
        yield Sample((x,), {"stable": True})
        for dim in range(-1, len(shape)):
            yield Sample((x, dim, True, True))
    yield Sample((all_different(rng, (3, 4), dtype),))
    yield Sample((all_different(rng, (3, 4), dtype), 0, True))
    yield Sample((random_array(rng, (), dtype),))
    for x in _with_nan(rng, dtype):
        yield Sample((x,), {"descending": False, "stable": True})
        yield Sample((x,), {"dim": 1, "descending": True, "stable": True})


def _order(x, dim=-1, descending=False, stable=False):
    """Descending is the order of the reversed input, ascending and reversed, which keeps equal ones in order."""
    if x.ndim == 0:
        return np.asarray(np.int64(0))
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)


def _tops(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, k, dim in (((7,), 3, 0), ((3, 5), 2, 1), ((4, 3), 4, 0), ((2, 300), 5, -1)):
        for largest in (True, False):
            if dtype not in ("int8", "uint8") or np.prod(shape) < 100:
                yield Sample((all_different(rng, shape, dtype), k, dim, largest))


def _topk(x, k, dim, largest):
    order = np.take(_order(x, dim, largest), range(k), axis=dim)
    return np.take_along_axis(x, order, dim), order


def _kth(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, k, dim in (((7,), 3, 0), ((3, 5), 5, 1), ((4, 3), 1, -2), ((2, 3, 4), 2, 1)):
        yield Sample((all_different(rng, shape, dtype), k, dim))
        yield Sample((all_different(rng, shape, dtype), k), {"dim": dim, "keepdim": True})
    yield Sample((all_different(rng, (3, 4), dtype), 2))
    yield Sample((random_array(rng, (), dtype), 1))
    yield Sample((all_different(rng, (0, 3), dtype), 2, 1))
    for x in _with_nan(rng, dtype):
        yield Sample((x[0], 4), {}, "NaN is the last")


def _kthvalue(x, k, dim=-1, keepdim=False):
    if x.ndim == 0:
        return x, np.asarray(np.int64(0))
    order = np.take(_order(x, dim), [k - 1], axis=dim)
    found = (np.take_along_axis(x, order, dim), order)
    return found if keepdim else tuple(np.squeeze(part, dim) for part in found)


def _medians(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (4,), (3, 5), (2, 3, 4)):
        for dim in range(-1, len(shape)):
            yield Sample((all_different(rng, shape, dtype), dim))
        yield Sample((all_different(rng, shape, dtype),), {"dim": 0, "keepdim": True})
    for x in _with_nan(rng, dtype):
        yield Sample((x, 1), {}, "NaN")
        yield Sample((np.abs(x), 0), {}, "NaN")


def _median(x, dim, keepdim=False):
    """The first NaN along the dimension where there is one."""
    rows = np.moveaxis(x, dim, -1)
    places = np.take(np.argsort(rows, axis=-1, kind="stable"), (rows.shape[-1] - 1) // 2, axis=-1)
    nans = np.isnan(rows)
    places = np.where(nans.any(-1), nans.argmax(-1), places)[..., None]
    found = [np.moveaxis(part, -1, dim) for part in (np.take_along_axis(rows, places, -1), places)]
    return found if keepdim else [np.squeeze(part, dim) for part in found]


def _middle(x):
    known = x.size > 0 and not np.isnan(x).any()
    return np.asarray(np.sort(x.ravel())[(x.size - 1) // 2] if known else np.nan).astype(x.dtype)


def _unordered(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (4,), ()):
        yield Sample((random_array(rng, shape, dtype),))
    if np.dtype(dtype).kind == "f":
        yield Sample((np.zeros((0, 2), dtype),), {}, "nothing")
    for x in _with_nan(rng, dtype):
        yield Sample((x,), {}, "NaN")


def _searched(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for n, shape in ((6, (4,)), (1, (2, 3)), (9, ()), (0, (3,))):
        edges = np.sort(random_array(rng, (n,), dtype))
        x = random_array(rng, shape, dtype)
        for options in ({}, {"right": False}, {"right": True}, {"side": "left"}, {"side": "right"}):
            yield Sample((edges, x), options)
        yield Sample((edges, x), {"side": "right", "right": True, "out_int32": True})
        mixed = rng.permutation(edges)
        yield Sample((mixed, x), {"sorter": np.argsort(mixed, kind="stable"), "side": "right"})
        yield Sample((edges, 1), {"out_int32": True})
    rows = random_array(rng, (2, 5), dtype)
    yield Sample((np.sort(rows), random_array(rng, (2, 3), dtype)), {"right": True})
    yield Sample((rows, random_array(rng, (2, 3), dtype)), {"sorter": np.argsort(rows, kind="stable")})


def _search(edges, x, *, out_int32=False, right=False, side=None, sorter=None):
    x, side = np.asarray(x), "right" if right else side or "left"
    found = np.zeros(x.shape, np.int32 if out_int32 else np.int64)
    for at in np.ndindex(x.shape):
        row = at[:-1] if edges.ndim > 1 else ()
        found[at] = np.searchsorted(edges[row], x[at], side, None if sorter is None else sorter[row])
    return found


def _bucketed(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    edges = np.sort(random_array(rng, (5,), dtype))
    for shape in ((4,), (2, 3), (), (0,)):
        x = random_array(rng, shape, dtype)
        yield Sample((x, edges))
        yield Sample((x, edges), {"right": True})
        yield Sample((x, edges[:1]), {"out_int32": True, "right": False})
    yield Sample((2, edges), {"right": True})


def _counts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for n in (0, 1, 20):
        x = random_array(rng, (n,), dtype, 0, 7)
        yield Sample((x, None, 9))
        yield Sample((x,))
        yield Sample((x,), {"weights": rng.uniform(-1, 1, n), "minlength": 3})
        yield Sample((x, rng.uniform(-1, 1, n).astype(np.float32)))


def _bincount(x, weights=None, minlength=0):
    # Where nothing is counted there are no sums of weights either.
    return np.bincount(x, weights, minlength).astype(
        weights.dtype if weights is not None and x.size else np.int64
    )


def _measured(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((20,), (3, 4), (1,), ()):
        x = random_array(rng, shape, dtype)
        yield Sample((x,))
        yield Sample((x, 4))
        yield Sample((x, 5, -2, 3))
        yield Sample((x,), {"bins": 3, "min": 0, "max": 2.5})
    yield Sample((np.array([0, 1, 2, 3, 4], dtype), 4, 0, 4))
    yield Sample((np.zeros(0, dtype), 3))
    yield Sample((np.array([2, 3], dtype), 2, 3, 3))
    yield Sample((np.array([np.nan, 1, 2], dtype), 2, 0, 2))


def _histc(x, bins=100, min=0, max=0):
    x = x[~np.isnan(x)]
    if min == max == 0 and x.size:
        min, max = x.min(), x.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(x, bins, (min, max))[0].astype(x.dtype)


_DTYPES = ("bool", *REALS)


def _judged(name, reference, samples, dtypes, **more):
    return OpRecord(name, reference, samples, dtypes, **more)


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


def _complex() -> Any:
    return misfit("", np.zeros(2, np.complex64), words=("complex",), error=NotImplementedError)


def _sorted_rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((), -1), ((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 300), -1), ((0, 3), 0)):
        for descending in (False, True):
            yield Sample((random_array(rng, shape, dtype, -100, 100), dim, descending))


def _sort(x: np.ndarray, dim: int, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    if descending:  # stable in descending order: sort the reversed row, and reverse back
        order = x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    else:
        order = np.argsort(x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order.astype(np.int64)


def _ranked(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (
        ((), -1),
        ((7,), 0),
        ((3, 5), 0),
        ((3, 5), 1),
        ((2, 300), -1),
        ((5000,), 0),
        ((0, 3), 1),
    ):
        x = random_array(rng, shape, dtype, -100, 100)
        for _ in range(2):
            ranks = np.asarray(
                rng.integers(shape[dim] if shape else 1, size=np.sum(x, axis=dim, keepdims=x.ndim > 0).shape)
            )
            yield Sample((x, ranks, dim))
    for x in _with_nan(rng, dtype):
        yield Sample((x, np.array([[2], [3]]), 1))


def _rank_indices(x: np.ndarray, ranks: np.ndarray, dim: int) -> np.ndarray:
    return np.take_along_axis(_order(x, dim), ranks, dim) if x.ndim else np.asarray(np.int64(0))


def _distinct_slices(x, dim):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts


def _repeated_slices(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((6, 2), (5,), (2, 6, 2), (1, 3)):
        for dim in range(-1, len(shape)):
            yield Sample((np.asarray(random_array(rng, shape, "int8", 0, 2)).astype(dtype), dim))


RECORDS = [
    _record("argsort", _order, _sorted, REALS, errors=(
        *misfit("argsort", (2, 3), 2, words=("dim", "2"), error=IndexError),
        *misfit("sort", np.zeros(3, np.complex64), words=("self", "complex64"), error=NotImplementedError),
    )),
    _record("bincount", _bincount, _counts, INTEGERS[:5], errors=(
        *misfit("bincount", np.int64([1, -1]), words=("-1",)),
        *misfit("bincount", (2,), words=("float32",), error=(RuntimeError, TypeError)),
        *misfit("bincount", np.int64([1, 1]), (3,), words=("weights", "(2,)", "(3,)")),
        *misfit("bincount", np.int64([[1]]), words=("1",)),
        *misfit("bincount", np.int64([1]), None, -1, words=("minlength", "-1")),
    )),
    _record("bucketize", lambda x, edges, **options: _search(edges, x, **options), _bucketed, errors=misfit(
        "bucketize", (2,), (2, 3), words=("boundaries", "(2, 3)")
    )),
    _record("histc", _histc, _measured, FLOATS, errors=(
        *misfit("histc", (3,), 0, words=("bins", "0")),
        *misfit("histc", (3,), 3, 2, 1, words=("min", "max", "2", "1")),
        *misfit("histc", np.float32([1, np.nan]), words=("min", "max", "nan")),
    )),
    _record("kthvalue", _kthvalue, _kth, differentiable=True, errors=(
        *misfit("kthvalue", (3,), 4, words=("k", "4", "3")),
        *misfit("kthvalue", (2, 0), 1, words=("dimension 1", "(2, 0)"), error=IndexError),
        *misfit("kthvalue", (3,), 0, words=("k", "0", "3")),
        *misfit("kthvalue", (3,), 1, 1, words=("dim", "1"), error=IndexError),
    )),
    _record("median", _middle, _unordered, differentiable=True),
    _record("median", _median, _medians, differentiable=True, errors=(
        *misfit("median", (2, 3), 2, words=("dim", "2"), error=IndexError),
        *misfit("median", (2, 0), 1, words=("1", "(2, 0)"), error=(IndexError, RuntimeError)),
    )),
    _record("msort", lambda x: np.sort(x, 0), lambda d, rng: (
        Sample((random_array(rng, s, d),)) for s in ((5,), (2, 3), (0, 2))
    ), differentiable=True),
    _record("searchsorted", _search, _searched, errors=(
        *misfit("searchsorted", (2, 3), (2,), words=("self", "(2,)", "(2, 3)")),
        *misfit("searchsorted", (3,), (2,), side="up", words=("side", "up")),
        *misfit("searchsorted", (3,), (2,), side="left", right=True, words=("side", "right")),
        *misfit("searchsorted", (3,), (2,), sorter=np.int64([0, 1]), words=("sorter", "(2,)", "(3,)")),
        *misfit("searchsorted", (3,), (2,), sorter=np.float32([0, 1, 2]), words=("sorter", "float32")),
        *misfit("", (3,), (2,), sorter=np.int64([0, 1, 5]), words=("5",), error=(IndexError, RuntimeError)),
    )),
    _record("topk", _topk, _tops, differentiable=True,
            errors=(ErrorSample((zeros(3), 5), {}, (RuntimeError, IndexError, ValueError), ("5",)),)),
    _judged("unique", _unique, _options, _DTYPES, errors=(
        *_complex(), *misfit("unique", (2, 3), dim=2, words=("dim", "2"), error=IndexError)
    )),
    _judged("unique_all", _all, _plain, _DTYPES, errors=_complex(), behaviours=("unique values",)),
    _judged("unique_consecutive", _consecutive, _slices, ALL, errors=misfit(
        "", (2, 3), dim=2, words=("dim", "2"), error=IndexError
    )),
    _judged("unique_consecutive_all", _runs, _plain, ALL, namespace="ops"),
    _judged("rank_indices", _rank_indices, _ranked, ("bool", *REALS), namespace="ops", errors=(
        *misfit(
            "", np.zeros(2, np.complex64), np.zeros(1, np.int64), words=("complex",), error=(TypeError, RuntimeError)
        ),
        ErrorSample((zeros(3), zeros(1)), {}, (TypeError, RuntimeError), ("rank", "int64")),
        *misfit("rank_indices", (3,), np.zeros(2, np.int64), words=("rank", "(2,)", "(1,)")),
        ErrorSample((zeros(3), zeros(1, dtype=np.int64) + 3), {}, IndexError, ("3",)),
        ErrorSample((zeros(2, 3), zeros(2, 1, dtype=np.int64), 2), {}, IndexError, ("2",)),
    )),
    OpRecord("sort", _sort, _sorted_rows, ("bool", *REALS), differentiable=True, errors=dimension("sort")),
    _judged("unique_dim", _distinct_slices, _repeated_slices, _DTYPES, namespace="ops", errors=misfit(
        "", (2, 3), 2, error=IndexError, words=("dim", "2")
    )),
    _judged("unique_dim_consecutive", _runs, _repeated_slices, ALL, namespace="ops", errors=misfit(
        "", (2, 3), -3, error=IndexError, words=("dim", "-3")
    )),
]  # fmt: skip
