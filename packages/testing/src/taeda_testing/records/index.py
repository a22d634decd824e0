"""Records of indexing by tensors, and choosing by masks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS_AND_COMPLEX, NUMBERS, OpRecord, Sample
from taeda_testing.sampling import reduction
from taeda_testing.wrong import misfit

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


def _axis_last(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for source in (True, False):
        for x, dim, index, value in (s.args for s in _scattered(source)(dtype, rng)):
            yield Sample((x, index, value if source else 1, dim))


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


def _index_add(x, dim, index, source, alpha=1):
    out = x.copy()
    np.add.at(out, _at(dim, index, x), (alpha * source).astype(x.dtype))
    return out


def _weighed(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Additions with a factor, complex for complex numbers."""
    for sample in _rows(dtype, rng):
        yield Sample(sample.args, {"alpha": 1 - 2j if np.dtype(dtype).kind == "c" else 3})


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


def _nonzero(x, as_tuple=False):
    found = np.argwhere(x).astype(np.int64)
    return list(np.argwhere(np.atleast_1d(x)).astype(np.int64).T) if as_tuple else found


def _counted(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in reduction(-1, 1)(dtype, rng):
        if not sample.kwargs.pop("keepdim", False):
            yield sample


def _count_nonzero(x, dim=None):
    return np.asarray(np.count_nonzero(x, axis=dim), np.int64)


def _as_tuple(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _sparse(dtype, rng):
        yield Sample(sample.args, {"as_tuple": True})


def _numbers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    mask, x = rng.integers(0, 2, (2, 3)).astype(bool), random_array(rng, (2, 3), dtype)
    yield Sample((mask, x, 2.5))
    yield Sample((mask, -1, x))


def _repeated(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, times, dim in (((3,), 2, 0), ((2, 3), 3, 1), ((2, 3), 2, None)):
        yield Sample((random_array(rng, shape, dtype), times, dim))
    x = random_array(rng, (2, 3), dtype)
    yield Sample((x, 2), {"dim": -1, "output_size": 6})
    yield Sample((x, 0, 0))
    yield Sample((x, np.int64([2, 0, 1]), 1))
    yield Sample((x, np.int64([1, 2])), {"dim": -2, "output_size": 3})
    yield Sample((x, np.int32([3, 0, 1, 1, 0, 2])))
    yield Sample((x, np.int64([2]), 0))


RECORDS = [
    _record("scatter", _scatter, _scattered(True), in_place=True, errors=(
        *misfit("scatter", (3,), 0, np.int64([3]), (1,), words=("index", "3"), error=IndexError),
        *misfit("scatter", (3,), 0, np.int64([0, 1]), (1,), words=("index", "2", "1")),
    )),
    _record("scatter", _scatter, _scattered(False), NUMBERS, in_place=True),
    _record("put_along_axis", lambda x, i, v, dim: _scatter(x, dim, i, v), _axis_last, errors=misfit(
        "", (3,), np.int64([4]), 1, 0, words=("index", "4", "3"), error=IndexError
    )),
    _record("scatter_add", _scatter_add, _added, NUMBERS, in_place=True, errors=misfit(
        "scatter_add", (3,), 0, np.int64([-4]), (1,), words=("index", "-4"), error=IndexError
    )),
    _record("index_add", _index_add, _rows, NUMBERS, in_place=True, errors=misfit(
        "", (3,), 0, np.int64([3]), (1,), words=("index", "3"), error=IndexError
    )),
    _record("index_add", _index_add, _weighed, NUMBERS),
    _record("index_copy", _index_copy, _rows, in_place=True, errors=misfit(
        "index_copy", (3,), 0, np.int64([0, 1]), (1,), words=("source", "2", "1")
    )),
    _record("masked_select", lambda x, m: x[np.broadcast_to(m, x.shape)], _masks, errors=misfit(
        "masked_select", (2,), np.zeros(3, bool), words=("2", "3")
    )),
    _record("masked_fill", lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x), _filled, in_place=True),
    _record("where", np.where, _chosen, out=True, errors=misfit(
        "where", np.zeros(2, bool), (3,), 0.0, words=("2", "3")
    )),
    _record("where", lambda c: _nonzero(c, True), _sparse, gradient=()),
    _record("where", np.where, _numbers, FLOATS_AND_COMPLEX),
    _record("nonzero", _nonzero, _sparse, gradient=()),
    _record("nonzero", _nonzero, _as_tuple, gradient=()),
    _record("argwhere", lambda x: np.argwhere(x).astype(np.int64), _sparse, gradient=()),
    _record("count_nonzero", _count_nonzero, _sparse, gradient=()),
    _record("count_nonzero", _count_nonzero, _counted, gradient=(), errors=misfit(
        "", (2, 3), 2, words=("dim", "2"), error=IndexError
    )),
    _record("repeat_interleave", lambda x, n, dim=None, output_size=None: np.repeat(x, n, dim), _repeated, errors=(
        *misfit("repeat_interleave", (3,), 2, 0, output_size=5, words=("output_size", "5", "6")),
        *misfit("repeat_interleave", (3,), -1, words=("repeats", "-1")),
        *misfit("repeat_interleave", (3,), np.int64([1, 2]), 0, words=("repeats", "2", "3")),
    )),
    _record("take", lambda x, i: np.take(x, i), lambda d, rng: (
        Sample((random_array(rng, s, d), rng.integers(-6, 6, i)[...]))
        for s, i in (((6,), (3,)), ((2, 3), (2, 2)), ((6,), ()))
    ), errors=misfit("", (3,), np.int64([3]), words=("index", "3"), error=IndexError)),
]  # fmt: skip
