"""Records of indexing by tensors, choosing by masks, and sorting's relatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS, INTEGERS, NUMBERS, REALS, OpRecord, Sample

_GRAD = ("float64",)
_ALONG = (((4,), 0, 3), ((3, 4), 1, 2), ((3, 4), 0, 5), ((2, 3, 4), -1, 2))


def _record(name, reference, samples, dtypes=ALL, gradient=_GRAD, **more):
    return OpRecord(name, reference, samples, dtypes, gradient, family="index", **more)


def _places(shape, dim, size, rng):
    index = list(shape)
    index[dim] = size
    return rng.integers(0, shape[dim], index)


def _scattered(source: bool):
    """Places that are distinct along the dimension, and values for them."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, dim, size in _ALONG:
            n = min(size, shape[dim])
            order = rng.permuted(np.broadcast_to(_steps(shape, dim), shape), axis=dim)
            index = np.ascontiguousarray(np.take(order, range(n), axis=dim))
            value = random_array(rng, index.shape, dtype) if source else 2
            yield Sample((random_array(rng, shape, dtype), dim, index, value))

    return samples


def _steps(shape, dim):
    form = [1] * len(shape)
    form[dim] = shape[dim]
    return np.arange(shape[dim]).reshape(form)


def _scatter(x, dim, index, value):
    out = x.copy()
    np.put_along_axis(out, index, value, dim)
    return out


def _added(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim, size in _ALONG:
        index = _places(shape, dim, size, rng)
        yield Sample(
            (random_array(rng, shape, dtype), dim, index, random_array(rng, index.shape, dtype, -2, 2))
        )


def _scatter_add(x, dim, index, source):
    out = x.copy()
    for at in np.ndindex(index.shape):
        target = list(at)
        target[dim] = index[at]
        out[tuple(target)] += source[at]
    return out


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((4,), 0), ((3, 4), 1), ((2, 3, 4), -2)):
        index = rng.permutation(shape[dim])[:2]
        part = list(shape)
        part[dim] = 2
        yield Sample((random_array(rng, shape, dtype), dim, index, random_array(rng, part, dtype)))


def _at(dim, index, x):
    return tuple(index if i == dim % x.ndim else slice(None) for i in range(x.ndim))


def _index_add(x, dim, index, source):
    out = x.copy()
    np.add.at(out, _at(dim, index, x), source)
    return out


def _index_copy(x, dim, index, source):
    out = x.copy()
    out[_at(dim, index, x)] = source
    return out


def _masks(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, mask in (((5,), (5,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((0,), (0,)), ((), ())):
        yield Sample((random_array(rng, shape, dtype), np.asarray(rng.integers(0, 2, mask).astype(bool))))


def _filled(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _masks(dtype, rng):
        yield Sample((*sample.args, 1))


def _chosen(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for c, a, b in (((3,), (3,), (3,)), ((2, 1), (3,), (2, 3)), ((), (2,), ()), ((0, 3), (3,), (0, 3))):
        mask = np.asarray(rng.integers(0, 2, c).astype(bool))
        yield Sample((mask, random_array(rng, a, dtype), random_array(rng, b, dtype)))


def _sparse(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((6,), (3, 4), (2, 2, 3), (0, 2), ()):
        kept = random_array(rng, shape, "bool").astype(dtype)
        yield Sample((np.asarray(random_array(rng, shape, dtype) * kept),))


def _tops(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, k, dim in (((7,), 3, 0), ((3, 5), 2, 1), ((4, 3), 4, 0), ((2, 300), 5, -1)):
        for largest in (True, False):
            # Distinct values: which of equal ones is taken is not part of the contract.
            size = int(np.prod(shape))
            values = rng.permutation(size) if size < 100 or dtype not in ("int8", "uint8") else None
            if values is not None:
                yield Sample((values.reshape(shape).astype(dtype), k, dim, largest))


def _topk(x, k, dim, largest):
    order = np.argsort(x, axis=dim, kind="stable")
    order = np.flip(order, dim) if largest else order
    order = np.take(order, range(k), axis=dim)
    return np.take_along_axis(x, order, dim), order.astype(np.int64)


def _searched(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for n, shape in ((6, (4,)), (1, (2, 3)), (9, ())):
        for right in (False, True):
            edges = np.sort(random_array(rng, (n,), dtype))
            yield Sample((edges, random_array(rng, shape, dtype)), {"right": right})


def _search(edges, x, right=False):
    return np.asarray(np.searchsorted(edges, x, "right" if right else "left"), np.int64)


def _counts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for n in (0, 1, 20):
        yield Sample((random_array(rng, (n,), dtype, 0, 7), None, 9))


def _repeated(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, times, dim in (((3,), 2, 0), ((2, 3), 3, 1), ((2, 3), 2, None)):
        yield Sample((random_array(rng, shape, dtype), times, dim))


_ORDERED = tuple(d for d in REALS if d not in ("uint16", "uint32", "uint64"))

RECORDS = [
    _record("scatter", _scatter, _scattered(True)),
    _record("scatter", _scatter, _scattered(False), NUMBERS),
    _record("scatter_add", _scatter_add, _added, NUMBERS),
    _record("index_add", _index_add, _rows, NUMBERS),
    _record("index_copy", _index_copy, _rows),
    _record("masked_select", lambda x, m: x[np.broadcast_to(m, x.shape)], _masks),
    _record("masked_fill", lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x), _filled),
    _record("where", np.where, _chosen),
    _record("nonzero", lambda x: np.argwhere(x).astype(np.int64), _sparse, gradient=()),
    _record("argwhere", lambda x: np.argwhere(x).astype(np.int64), _sparse, gradient=()),
    _record("count_nonzero", lambda x: np.asarray(np.count_nonzero(x), np.int64), _sparse, gradient=()),
    _record("topk", _topk, _tops, _ORDERED, gradient=("float64",)),
    _record("searchsorted", _search, _searched, _ORDERED, gradient=()),
    _record("bincount", lambda x, w, n: np.bincount(x, w, n).astype(np.int64), _counts, INTEGERS[2:4], gradient=()),
    _record("repeat_interleave", lambda x, n, dim: np.repeat(x, n, dim), _repeated),
    _record("take", lambda x, i: np.take(x, i), lambda d, rng: (
        Sample((random_array(rng, s, d), rng.integers(0, 6, i))) for s, i in (((6,), (3,)), ((2, 3), (2, 2)))
    )),
    _record("median", lambda x: np.asarray(np.sort(x.reshape(-1))[(x.size - 1) // 2]), lambda d, rng: (
        Sample((random_array(rng, s, d),)) for s in ((5,), (2, 3), (4,), ())
    ), _ORDERED),
    _record("msort", lambda x: np.sort(x, 0), lambda d, rng: (
        Sample((random_array(rng, s, d),)) for s in ((5,), (2, 3), (0, 2))
    ), FLOATS),
]  # fmt: skip
