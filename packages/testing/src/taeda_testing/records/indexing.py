"""Records of reading and writing through index tensors and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, COMPLEX, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import misfit

_WRONG = (RuntimeError, ValueError, IndexError)


def _record(name, reference, samples, dtypes=ALL, gradient=("float64",), **more):
    return OpRecord(name, reference, samples, dtypes, gradient, family="index", **more)


def _chosen(rng: np.random.Generator) -> Iterator[tuple[tuple[int, ...], list[Any]]]:
    """Shapes and the index of each dimension; an index never names a place twice."""
    yield (5,), [np.int64([3, -5, 1])]
    yield (4, 3), [np.int64([2, 0])]
    yield (4, 3), [np.int64([2, 0, -1]), np.int64([1, 1, 0])]
    yield (4, 3), [None, np.int32([[2, 0]])]
    yield (4, 3), [np.int64([[0], [2]]), np.int64([1, -1])]
    yield (2, 3, 4), [np.int64([1, 0]), None, np.int64([3, 2])]
    yield (2, 3, 4), [None, np.int64([1, 2]), np.int64([3, 0])]
    yield (2, 3), [rng.integers(0, 2, (2, 3)).astype(bool)]
    yield (3, 4), [None, np.bool_([True, False, False, True])]
    yield (3, 4), [np.bool_([True, False, True]), np.int64([3, 0])]
    yield (4, 3), [np.int64(2)[...]]
    yield (3, 2), [np.zeros(0, np.int64)]


def _key(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _read(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, indices in _chosen(rng):
        yield Sample((random_array(rng, shape, dtype), indices))
    yield Sample((random_array(rng, (3, 2), dtype), [np.int64([1, 1, 0, 1])]))


def _written(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Values of the full shape, broadcast, one number; added where places repeat."""
    for shape, indices in _chosen(rng):
        x = random_array(rng, shape, dtype)
        part = np.zeros(shape)[_key(indices)].shape
        yield Sample((x, indices, random_array(rng, part, dtype)))
        yield Sample((x, indices, random_array(rng, part[-1:] if len(part) > 1 else (), dtype)))
        yield Sample((x, indices, 1))
    if np.dtype(dtype).kind != "b":
        twice = [np.int64([1, 0, 1, 1])]
        yield Sample((random_array(rng, (3, 2), dtype), twice, random_array(rng, (4, 2), dtype, 0, 2), True))
        yield Sample((random_array(rng, (3,), dtype), twice, random_array(rng, (), dtype, 0, 2), True))


def _put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, _key(indices), values)
    else:
        out[_key(indices)] = values
    return out


_SETTINGS = (
    ErrorSample((np.zeros(3), (np.int64([7]),), 1.0), {}, IndexError, ("index_put_", "7", "3")),
    ErrorSample((np.zeros(3), (np.int64([0]), np.int64([0])), 1.0), {}, IndexError, ("index_put_", "(3,)")),
    ErrorSample((np.zeros(3), (np.zeros(2),), 1.0), {}, (IndexError, TypeError), ("index_put_", "float64")),
    ErrorSample((np.zeros(3), (np.int64([0, 1]),), np.zeros(3)), {}, _WRONG, ("index_put_", "2", "3")),
    ErrorSample((np.zeros(3), (np.ones(2, bool),), 1.0), {}, IndexError, ("index_put_", "2", "3")),
)


def _masked(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    plain = (((5,), (5,), 5), ((2, 3), (2, 3), 8), ((), (), 1), ((0,), (0,), 0))
    for shape, mask, size in (*plain, ((2, 3), (3,), 6), ((3,), (2, 3), 6)):
        chosen = random_array(rng, mask, "bool")
        yield Sample((random_array(rng, shape, dtype), chosen, random_array(rng, (size,), dtype)))
    yield Sample((random_array(rng, (2, 2), dtype), np.eye(2, dtype=bool), random_array(rng, (2, 3), dtype)))


def _masked_scatter(x, mask, source):
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out, mask = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    out[mask] = source.ravel()[: mask.sum()]
    return out


def _classes(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((), (1,), (5,), (2, 3)):
        labels = rng.integers(0, 4, shape)[...]
        yield Sample((labels,))
        yield Sample((labels, -1))
        yield Sample((labels, 6))
    yield Sample((np.zeros((2, 0), np.int64), 3))


def _one_hot(labels, num_classes=-1):
    return np.eye(num_classes if num_classes > 0 else labels.max() + 1, dtype=np.int64)[labels]


def _along(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    plain = (((4,), (3,), 0), ((3, 4), (3, 2), 1), ((2, 3), (0, 3), 0))
    for shape, index, dim in (*plain, ((3, 4), (1, 2), -1), ((3, 1), (2, 5), 0)):
        yield Sample((random_array(rng, shape, dtype), rng.integers(0, shape[dim], index), dim))
    yield Sample((random_array(rng, (3, 4), dtype), rng.integers(0, 12, (2, 3))))
    yield Sample((random_array(rng, (3,), dtype), np.int64([-1, 0, -3])), {"dim": -1})


def _take_along(x, index, dim=None):
    if dim is None:
        return x.ravel()[index.ravel()]
    rest = [1 if i == dim % x.ndim else n for i, n in enumerate(index.shape)]
    other = [1 if i == dim % x.ndim else n for i, n in enumerate(x.shape)]
    shape = np.broadcast_shapes(tuple(rest), tuple(other))
    wide = [index.shape[i] if i == dim % x.ndim else n for i, n in enumerate(shape)]
    full = [x.shape[i] if i == dim % x.ndim else n for i, n in enumerate(shape)]
    return np.take_along_axis(np.broadcast_to(x, full), np.broadcast_to(index, wide), dim)


def _reduced(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for shape, dim, part in (
            ((4,), 0, (6,)),
            ((3, 4), 1, (2, 5)),
            ((2, 3), -2, (4, 2)),
            ((3, 2), 0, (0, 2)),
        ):
            index = rng.integers(0, shape[dim], part)
            call = (
                random_array(rng, shape, dtype, -2, 2),
                dim,
                index,
                random_array(rng, part, dtype, -2, 2),
                reduce,
            )
            yield Sample(call)
            yield Sample(call, {"include_self": False})


def _combined(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """The ways of combining that ask for no order."""
    return (s for s in _reduced(dtype, rng) if s.args[4] in ("sum", "prod", "mean"))


_COMBINE: dict[str, Callable[[list[Any]], Any]] = {
    "sum": lambda v: np.sum(v, dtype=v[0].dtype),
    "prod": lambda v: np.prod(v, dtype=v[0].dtype),
    "mean": lambda v: np.sum(v, dtype=v[0].dtype) // len(v) if v[0].dtype.kind in "iu" else sum(v) / len(v),
    "amax": max,
    "amin": min,
}


def _scatter_reduce(x, dim, index, src, reduce, include_self=True):
    met = {at: [x[at]] if include_self else [] for at in np.ndindex(x.shape)}
    for at in np.ndindex(index.shape):
        target = list(at)
        target[dim] = index[at]
        met[tuple(target)].append(src[at])
    out = x.copy()
    for at, values in met.items():
        if values:
            out[at] = _COMBINE[reduce](values)
    return out


RECORDS = [
    _record("index", lambda x, indices: x[_key(indices)], _read, namespace="ops", errors=(
        ErrorSample((np.zeros(3), [np.int64([0, 3])]), {}, IndexError, ("index", "3")),
        ErrorSample((np.zeros(3), [np.zeros(1)]), {}, (IndexError, TypeError), ("index", "float64")),
        ErrorSample((np.zeros(3), [np.int64([0]), np.int64([0])]), {}, IndexError, ("index", "(3,)")),
        ErrorSample((np.zeros((3, 3)), [np.int64([0, 1]), np.int64([0, 1, 2])]), {}, _WRONG, ("index", "2", "3")),
        ErrorSample((np.zeros(3), [np.ones(2, bool)]), {}, IndexError, ("index", "2", "3")),
    )),
    _record("index_put", _put, _written, errors=_SETTINGS),
    _record("index_put_", _put, _written, gradient=(), errors=_SETTINGS, writes=(0,)),
    _record("masked_scatter", _masked_scatter, _masked, in_place=True, errors=(
        *misfit("masked_scatter", (3,), np.ones(3, bool), (2,), words=("source", "2", "3")),
        *misfit("masked_scatter", (3,), np.ones(3, np.int64), (3,), words=("mask", "int64")),
        *misfit("masked_scatter", (3,), np.ones(3, bool), np.zeros(3, np.int64), words=("source", "int64")),
    )),
    _record("one_hot", _one_hot, _classes, ("int64",), (), namespace="ops", errors=(
        *misfit("one_hot", np.int64([1, 4]), 4, words=("tensor", "4")),
        *misfit("one_hot", np.int64([-1]), words=("tensor", "-1")),
        *misfit("one_hot", (2,), words=("tensor", "float32"), error=(RuntimeError, TypeError)),
        *misfit("one_hot", np.zeros(0, np.int64), words=("num_classes",)),
    )),
    _record("scatter_reduce", _scatter_reduce, _combined, COMPLEX, in_place=True),
    _record("scatter_reduce", _scatter_reduce, _reduced, REALS, in_place=True, errors=(
        *misfit("scatter", (3,), 0, np.int64([4]), (1,), "sum", words=("index", "4", "3"), error=_WRONG),
        *misfit("scatter_reduce", (3,), 0, np.int64([0]), (1,), "most", words=("reduce", "most")),
        *misfit("scatter_reduce", (3,), 0, np.int64([0, 1]), (1,), "sum", words=("index", "2", "1")),
        *misfit("scatter_reduce", (3,), 1, np.int64([0]), (1,), "sum", words=("dim", "1"), error=IndexError),
    )),
    _record("take_along_dim", _take_along, _along, errors=(
        *misfit("", (3,), np.int64([4]), 0, words=("4", "3"), error=_WRONG),
        *misfit("take_along_dim", (3, 2), np.int64([1]), 0, words=("indices", "1", "2")),
    )),
]  # fmt: skip
