"""Records of joining, splitting, rearranging and indexing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, REALS, OpRecord, Sample

_GRAD = ("float64",)


def calls(*calls):
    """Samples from (shape, further arguments) pairs."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *rest in calls:
            yield Sample((random_array(rng, shape, dtype), *rest))

    return samples


def lists(*calls):
    """Samples from (shapes of a list, further arguments) pairs."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shapes, *rest in calls:
            yield Sample(([random_array(rng, shape, dtype) for shape in shapes], *rest))

    return samples


def _along(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim, size in (((4,), 0, 3), ((3, 4), 1, 2), ((3, 4), 0, 5), ((2, 3, 4), -1, 2)):
        places = list(shape)
        places[dim] = size
        index = rng.integers(0, shape[dim], places)
        yield Sample((random_array(rng, shape, dtype), dim, index))


def _selected(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((4,), 0), ((3, 4), 1), ((2, 3, 4), -2)):
        yield Sample((random_array(rng, shape, dtype), dim, rng.integers(0, shape[dim], 5)))


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


def _record(name, reference, samples, dtypes=ALL, **more):
    return OpRecord(name, reference, samples, dtypes, family="shape", **{"gradient": _GRAD, **more})


_TRIANGLES = (((3, 4),), ((3, 4), 1), ((2, 3, 3), -1), ((3, 3), 5), ((0, 2),))
_JOINED = ((((2, 3), (1, 3)), 0), (((2, 3), (2, 1)), -1), (((2, 3),), 0), (((2,), (0,), (1,)), 0))

RECORDS = [
    _record("reshape", np.reshape, calls(((2, 3), (3, 2)), ((2, 3), (-1,)), ((), (1, 1)), ((2, 0), (0, 5)))),
    _record("permute", np.transpose, calls(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()))),
    _record("transpose", np.swapaxes, calls(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((3, 3), 0, 1)), in_place=True),
    _record("movedim", np.moveaxis, calls(((2, 3, 4), 0, -1), ((2, 3, 4), (0, 1), (2, 0)), ((3,), 0, 0))),
    _record("squeeze", np.squeeze, calls(((2, 1, 3),), ((1, 1),), ((2, 1, 3), 1), ((1, 2, 1), (0, -1)), ((),))),
    _record("squeeze", lambda x, dim: x, calls(((2, 3), 0), ((2, 1, 3), (0, 2)), ((), 0)), in_place=True),
    _record("unsqueeze", np.expand_dims, calls(((2, 3), 0), ((2, 3), -1), ((), 0))),
    _record("broadcast_to", np.broadcast_to, calls(((1, 3), (2, 3)), ((3,), (2, 3)), ((), (2,)), ((1,), (0,)))),
    _record("flip", np.flip, calls(((2, 3), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (-1,)), ((0, 2), (1,)),
                                   ((2, 1, 3), (1,)))),
    _record("roll", np.roll, calls(((5,), 2), ((2, 3), 1, 1), ((2, 3), (1, -2), (0, 1)), ((2, 3), 4), ((0, 2), 1, 0))),
    _record("tile", np.tile, calls(((2, 3), (2, 1)), ((3,), (2, 2)), ((2, 3), (2,)), ((), (2,)), ((3,), (0,)))),
    _record("tril", np.tril, calls(*_TRIANGLES), in_place=True, out=True),
    _record("triu", np.triu, calls(*_TRIANGLES), in_place=True, out=True),
    _record("diagonal", np.diagonal, calls(((3, 4),), ((3, 4), 1), ((3, 4), -1), ((2, 3, 3), 0, 1, 2), ((0, 2),))),
    _record("diag", np.diag, calls(((3,),), ((3,), 1), ((3, 4),), ((3, 4), -1), ((0,), 1))),
    _record("rot90", np.rot90, calls(((2, 3),), ((2, 3), 2), ((2, 3, 4), 3, (0, 2)), ((2, 3), -1), ((2, 3), 4))),
    _record("cat", np.concatenate, lists(*_JOINED), out=True),
    _record("stack", np.stack, lists((((2, 3), (2, 3)), 0), (((2, 3), (2, 3)), -1), (((), ()), 0)), out=True),
    _record("hstack", np.hstack, lists((((2,), (3,)),), (((2, 3), (2, 1)),), (((), (2,)),))),
    _record("vstack", np.vstack, lists((((3,), (3,)),), (((2, 3), (1, 3)),), (((3,), (2, 3)),))),
    _record("gather", lambda x, dim, index: np.take_along_axis(x, index, dim), _along),
    _record("index_select", lambda x, dim, index: np.take(x, index, dim), _selected),
    _record("sort", _sort, _sorted_rows, ("bool", *REALS)),
]  # fmt: skip
