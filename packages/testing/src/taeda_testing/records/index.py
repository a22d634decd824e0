"""Records of reading and writing through index tensors and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    ErrorSample,
    OpRecord,
    Sample,
)
from taeda_testing.sampling import mostly_zero, with_masks
from taeda_testing.vocabulary import differentiable
from taeda_testing.wrong import misfit, wrong_call, zeros

_ALONG = (((4,), 0, 3), ((3, 4), 1, 2), ((3, 4), 0, 5), ((2, 3, 4), -1, 2))


def _record(name, reference, samples, dtypes=ALL, differentiable=True, **more):
    return OpRecord(name, reference, samples, dtypes, differentiable=differentiable, **more)


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


def _nonzero(x, as_tuple=False):
    found = np.argwhere(x).astype(np.int64)
    return list(np.argwhere(np.atleast_1d(x)).astype(np.int64).T) if as_tuple else found


def _as_tuple(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in mostly_zero(dtype, rng):
        yield Sample(sample.args, {"as_tuple": True})


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


def _filled(x: np.ndarray, dim: int, index: np.ndarray, value: float) -> np.ndarray:
    out = np.moveaxis(x.copy(), dim, 0)
    out[index] = value
    return np.moveaxis(out, 0, dim)


def _fills(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((5,), 0), ((2, 3), 1), ((3, 4, 2), -2)):
        index = rng.integers(0, shape[dim], (2,))
        yield Sample((random_array(rng, shape, dtype), dim, index, 1))


_WRONG = (RuntimeError, ValueError, IndexError)


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
    ErrorSample((np.zeros(3), (np.int64([7]),), 1.0), {}, IndexError, ("index_put", "7", "3")),
    ErrorSample((np.zeros(3), (np.int64([0]), np.int64([0])), 1.0), {}, IndexError, ("index_put", "(3,)")),
    ErrorSample((np.zeros(3), (np.zeros(2),), 1.0), {}, (IndexError, TypeError), ("index_put", "float64")),
    ErrorSample((np.zeros(3), (np.int64([0, 1]),), np.zeros(3)), {}, _WRONG, ("index_put", "2", "3")),
    ErrorSample((np.zeros(3), (np.ones(2, bool),), 1.0), {}, IndexError, ("index_put", "2", "3")),
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
    for reduce in _COMBINE:
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
    "max": max,
    "amin": min,
    "min": min,
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


_LOOSE = {"rtol": {"float32": 1e-5, "complex64": 1e-5}, "atol": {"float32": 1e-5, "complex64": 1e-5}}

_REDUCTIONS = {"prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}


def _put_flat(x: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False) -> np.ndarray:
    made = x.ravel().copy()
    if accumulate:
        np.add.at(made, index.ravel(), source.ravel())
    else:
        made[index.ravel()] = source.ravel()
    return made.reshape(x.shape)


def _puts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, places in (((5,), (2,)), ((3, 4), (2, 2)), ((2, 3), ()), ((4,), (0,))):
        count = int(np.prod(places))
        index = np.int64(rng.permutation(int(np.prod(shape)))[:count]).reshape(places)
        index = np.asarray(
            np.where(index % 2, index, index - int(np.prod(shape)))
        )  # some counted from the end
        source = random_array(rng, places, dtype)
        yield Sample((random_array(rng, shape, dtype), index, source))
        if dtype != "bool":
            yield Sample((random_array(rng, shape, dtype), index, source, True))


def _reduced_rows(
    x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, reduce: str, include_self: bool = True
) -> np.ndarray:
    made, rows, function = np.moveaxis(x.copy(), dim, 0), np.moveaxis(source, dim, 0), _REDUCTIONS[reduce]
    for place in sorted(set(index.tolist())):
        terms = [rows[k] for k in range(len(index)) if index[k] == place] + (
            [made[place]] if include_self else []
        )
        made[place] = function(np.stack(terms), axis=0)
    return np.moveaxis(made, 0, dim)


def _combinations(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for reduce in _REDUCTIONS:
        for shape, dim, index in (((4,), 0, [3, 0, 3]), ((2, 4), 1, [1, 1]), ((3, 2), -2, [2, 0, 1, 2])):
            source = list(shape)
            source[dim] = len(index)
            for include in (True, False):
                arrays = (
                    random_array(rng, shape, dtype, 0.5, 2),
                    random_array(rng, tuple(source), dtype, 0.5, 2),
                )
                yield Sample((arrays[0], dim, np.int64(index), arrays[1], reduce), {"include_self": include})


def _members(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, tests in (((6,), (3,)), ((2, 3), (2, 4)), ((), (2,)), ((4,), (0,)), ((0,), (2,))):
        sought = rng.integers(0, 6, shape).astype(dtype)
        yield Sample((sought, rng.integers(0, 6, tests).astype(dtype)))
        yield Sample((sought, rng.integers(0, 6, tests).astype(dtype)), {"invert": True})


def _indices(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for places, shape in (((), (5,)), ((4,), (2, 3, 4)), ((2, 2), (7, 1, 3))):
        yield Sample((rng.integers(0, int(np.prod(shape)), places).astype(dtype)[...], shape))


def _filled_diagonal(x: np.ndarray, value: float, wrap: bool = False) -> np.ndarray:
    made = x.copy()
    np.fill_diagonal(made, value, wrap)
    return made


def _squares(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (2, 4), (7, 3), (2, 2, 2)):
        yield Sample((random_array(rng, shape, dtype), 1))
    yield Sample((random_array(rng, (9, 3), dtype), 1, True))


_TWO = np.zeros(2, np.float32)


def _along_dims(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim, size in (((4,), 0, 3), ((3, 4), 1, 2), ((3, 4), 0, 5), ((2, 3, 4), -1, 2)):
        places = list(shape)
        places[dim] = size
        index = rng.integers(0, shape[dim], places)
        yield Sample((random_array(rng, shape, dtype), dim, index))


def _selected(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((4,), 0), ((3, 4), 1), ((2, 3, 4), -2)):
        yield Sample((random_array(rng, shape, dtype), dim, rng.integers(0, shape[dim], 5)))


RECORDS = [
    _record("scatter", _scatter, _scattered(True), in_place=True, errors=(
        *misfit("scatter", (3,), 0, np.int64([3]), (1,), words=("index", "3"), error=IndexError),
        *misfit("scatter", (3,), 0, np.int64([0, 1]), (1,), words=("index", "2", "1")),
    )),
    _record("scatter", _scatter, _scattered(False), NUMBERS, in_place=True),
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
    _record("masked_select", lambda x, m: x[np.broadcast_to(m, x.shape)], with_masks, errors=misfit(
        "masked_select", (2,), np.zeros(3, bool), words=("2", "3")
    )),
    _record("nonzero", _nonzero, mostly_zero, differentiable=False),
    _record("nonzero", _nonzero, _as_tuple, differentiable=False),
    _record("argwhere", lambda x: np.argwhere(x).astype(np.int64), mostly_zero, differentiable=False),
    _record("repeat_interleave", lambda x, n, dim=None, output_size=None: np.repeat(x, n, dim), _repeated, errors=(
        *misfit("repeat_interleave", (3,), 2, 0, output_size=5, words=("output_size", "5", "6")),
        *misfit("repeat_interleave", (3,), -1, words=("repeats", "-1")),
        *misfit("repeat_interleave", (3,), np.int64([1, 2]), 0, words=("repeats", "2", "3")),
    )),
    _record("take", lambda x, i: np.take(x, i), lambda d, rng: (
        Sample((random_array(rng, s, d), rng.integers(-6, 6, i)[...]))
        for s, i in (((6,), (3,)), ((2, 3), (2, 2)), ((6,), ()))
    ), errors=misfit("", (3,), np.int64([3]), words=("index", "3"), error=IndexError)),
    OpRecord("index_fill", _filled, _fills, ALL, differentiable=True, in_place=True,
             errors=misfit("", (3,), 0, np.int64([3]), 1, words=("index", "3"), error=IndexError)),
    _record("index", lambda x, indices: x[_key(indices)], _read, namespace="ops", errors=(
        ErrorSample((np.zeros(3), [np.int64([0, 3])]), {}, IndexError, ("index", "3")),
        ErrorSample((np.zeros(3), [np.zeros(1)]), {}, (IndexError, TypeError), ("index", "float64")),
        ErrorSample((np.zeros(3), [np.int64([0]), np.int64([0])]), {}, IndexError, ("index", "(3,)")),
        ErrorSample((np.zeros((3, 3)), [np.int64([0, 1]), np.int64([0, 1, 2])]), {}, _WRONG, ("index", "2", "3")),
        ErrorSample((np.zeros(3), [np.ones(2, bool)]), {}, IndexError, ("index", "2", "3")),
    ), behaviours=("advanced indexing",)),
    _record("index_put", _put, _written, errors=_SETTINGS),
    _record("index_put_", _put, _written, differentiable=False, errors=_SETTINGS, writes=(0,),
            behaviours=("advanced assignment",)),
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
    _record("scatter_reduce", _scatter_reduce, _combined, COMPLEX, in_place=True, half="largest"),
    _record("scatter_reduce", _scatter_reduce, _reduced, REALS, in_place=True, errors=(
        *misfit("scatter", (3,), 0, np.int64([4]), (1,), "sum", words=("index", "4", "3"), error=_WRONG),
        *misfit("scatter_reduce", (3,), 0, np.int64([0]), (1,), "most", words=("reduce", "most")),
        *misfit("scatter_reduce", (3,), 0, np.int64([0, 1]), (1,), "sum", words=("index", "2", "1")),
        *misfit("scatter_reduce", (3,), 1, np.int64([0]), (1,), "sum", words=("dim", "1"), error=IndexError),
    ), half="largest"),
    _record("take_along_dim", _take_along, _along, errors=(
        *misfit("", (3,), np.int64([4]), 0, words=("4", "3"), error=_WRONG),
        *misfit("take_along_dim", (3, 2), np.int64([1]), 0, words=("indices", "1", "2")),
    )),
    differentiable("put", _put_flat, _puts, ALL, in_place=True, errors=(
        *misfit("", (3,), np.int64([3]), (1,), words=("3",), error=IndexError),
        *misfit("put", (3,), np.int64([0]), (2,), words=("source", "1", "2")),
    )),
    differentiable("index_reduce", _reduced_rows, _combinations, FLOATS, in_place=True, **_LOOSE, errors=(
        wrong_call(RuntimeError, "index_reduce reduce sum", _TWO, 0, np.int64([0]), _TWO[:1], "sum"),
        wrong_call(RuntimeError, "index_reduce source", _TWO, 0, np.int64([0, 1]), _TWO[:1], "amax"),
        wrong_call(IndexError, "index_reduce index", _TWO, 1, np.int64([0]), _TWO[:1], "amax"),
    )),
    OpRecord("fill_diagonal_", _filled_diagonal, _squares, ALL, writes=(0,), errors=(
        wrong_call(RuntimeError, "fill_diagonal_ 2", _TWO, 1),
        wrong_call(RuntimeError, "fill_diagonal_ equal", np.zeros((2, 3, 2), np.float32), 1),
    )),
    OpRecord("isin", lambda x, tests, invert=False: np.isin(x, tests, invert=invert), _members, REALS),
    OpRecord("unravel_index", lambda at, shape: tuple(np.int64(one) for one in np.unravel_index(at, shape)), _indices,
            INTEGERS, errors=(
                wrong_call(TypeError, "unravel_index indices float32", _TWO, (2,)),
                wrong_call(ValueError, "unravel_index shape", np.int64([1]), (2, -1)),
            )),
    OpRecord("gather", lambda x, dim, index: np.take_along_axis(x, index, dim), _along_dims, ALL, differentiable=True,
            errors=( ErrorSample((zeros(3), 0, np.int64([5])), {}, (IndexError, RuntimeError), ("5",)),
            ErrorSample((zeros(3), 0, zeros(2)), {}, (IndexError, RuntimeError, TypeError), ("int",)), )),
    OpRecord("index_select", lambda x, dim, index: np.take(x, index, dim), _selected, ALL, differentiable=True,
            errors=(ErrorSample((zeros(3), 0, np.int64([7])), {}, (IndexError, RuntimeError), ("7",)),)),
]  # fmt: skip
