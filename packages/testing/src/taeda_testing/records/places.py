"""Records of places of elements: writes to numbered places, combined slices, membership, coordinates, neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, FLOATS, FLOATS_AND_COMPLEX, INTEGERS, REALS, OpRecord, Sample
from taeda_testing.wrong import misfit, wrong_call

_GRAD = ("float64",)
_LOOSE = {"rtol": {"float32": 1e-5, "complex64": 1e-5}, "atol": {"float32": 1e-5, "complex64": 1e-5}}
_REDUCTIONS = {"prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}


def _put(x: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False) -> np.ndarray:
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


def _combined(
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


def _differences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, args in (
        ((5,), ()),
        ((3, 4), (2,)),
        ((3, 4), (1, 0)),
        ((3,), (0,)),
        ((2,), (3,)),
        ((2, 0), ()),
    ):
        yield Sample((random_array(rng, shape, dtype), *args))
    more = {name: random_array(rng, (2, size), dtype) for name, size in (("prepend", 1), ("append", 2))}
    yield Sample((random_array(rng, (2, 3), dtype),), more)


def _diff(x: np.ndarray, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> np.ndarray:
    x = np.concatenate([part for part in (prepend, x, append) if part is not None], dim)
    for _ in range(n):
        if x.shape[dim] == 0:
            break
        x = np.diff(x, axis=dim)
    return x


def _curves(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (3, 4), (1, 2), (2, 1)):
        yield Sample((random_array(rng, shape, dtype),))
        yield Sample((random_array(rng, shape, dtype),), {"dx": 0.5})
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape[-1:], dtype)))
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape, dtype)), {"dim": 0})


def _areas(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    y = np.moveaxis(y, dim, -1)
    steps = dx if x is None else np.diff(x if x.ndim < y.ndim else np.moveaxis(x, dim, -1))
    return np.moveaxis((y[..., 1:] + y[..., :-1]) / 2 * steps, -1, dim).astype(y.dtype)


def _summed(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    return _areas(y, x, dx, dim).sum(dim)


def _running(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    return _areas(y, x, dx, dim).cumsum(dim)


def _filled(x: np.ndarray, value: float, wrap: bool = False) -> np.ndarray:
    made = x.copy()
    np.fill_diagonal(made, value, wrap)
    return made


def _squares(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3, 3), (2, 4), (7, 3), (2, 2, 2)):
        yield Sample((random_array(rng, shape, dtype), 1))
    yield Sample((random_array(rng, (9, 3), dtype), 1, True))


def _record(name: str, function: Callable[..., Any], samples: Any, dtypes: Any, **more: Any) -> OpRecord:
    return OpRecord(name, function, samples, dtypes, **{"gradient": _GRAD, "family": "index", **more})


_TWO = np.zeros(2, np.float32)

RECORDS = [
    _record("put", _put, _puts, ALL, in_place=True, errors=(
        *misfit("", (3,), np.int64([3]), (1,), words=("3",), error=IndexError),
        *misfit("put", (3,), np.int64([0]), (2,), words=("source", "1", "2")),
    )),
    _record("index_reduce", _combined, _combinations, FLOATS, in_place=True, **_LOOSE, errors=(
        wrong_call(RuntimeError, "index_reduce reduce sum", _TWO, 0, np.int64([0]), _TWO[:1], "sum"),
        wrong_call(RuntimeError, "index_reduce source", _TWO, 0, np.int64([0, 1]), _TWO[:1], "amax"),
        wrong_call(IndexError, "index_reduce index", _TWO, 1, np.int64([0]), _TWO[:1], "amax"),
    )),
    _record("fill_diagonal_", _filled, _squares, ALL, gradient=(), writes=(0,), errors=(
        wrong_call(RuntimeError, "fill_diagonal_ 2", _TWO, 1),
        wrong_call(RuntimeError, "fill_diagonal_ equal", np.zeros((2, 3, 2), np.float32), 1),
    )),
    _record("isin", lambda x, tests, invert=False: np.isin(x, tests, invert=invert), _members, REALS, gradient=()),
    _record("unravel_index", lambda at, shape: tuple(np.int64(one) for one in np.unravel_index(at, shape)), _indices,
            INTEGERS, gradient=(), errors=(
                wrong_call(TypeError, "unravel_index indices float32", _TWO, (2,)),
                wrong_call(ValueError, "unravel_index shape", np.int64([1]), (2, -1)),
            )),
    _record("diff", _diff, _differences, ALL, out=True, family="reduce", errors=(
        wrong_call(RuntimeError, "diff", np.float32(1)[...]),
        wrong_call(RuntimeError, "diff n -1", _TWO, -1),
        wrong_call(IndexError, "1", _TWO, 1, 1),
    )),
    _record("trapezoid", _summed, _curves, FLOATS_AND_COMPLEX, family="reduce", **_LOOSE, errors=(
        wrong_call(RuntimeError, "trapezoid x dx", _TWO, _TWO, dx=1),
        wrong_call(RuntimeError, "trapezoid x 3", _TWO, np.zeros(3, np.float32)),
    )),
    _record("cumulative_trapezoid", _running, _curves, FLOATS_AND_COMPLEX, family="reduce", **_LOOSE, errors=(
        wrong_call(RuntimeError, "cumulative_trapezoid x 3", _TWO, np.zeros(3, np.float32)),
    )),
]  # fmt: skip
