"""Records of joining and splitting, of grids, padding, repeating and diagonals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, ErrorSample, OpRecord, Sample
from taeda_testing.records.shape import calls, lists
from taeda_testing.wrong import wrong_call

_GRAD = ("float64",)
_SHAPE = (RuntimeError, ValueError)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _each(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """A function of one array, or of each array of a list."""
    return lambda x: [function(a) for a in x] if isinstance(x, list) else function(x)


def _one_or_many(*shapes: tuple[int, ...]) -> Callable[..., Iterator[Sample]]:
    """Each shape alone, and all in one list."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        yield from calls(*[(shape,) for shape in shapes])(dtype, rng)
        yield from lists((shapes,))(dtype, rng)

    return samples


def _spread(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Lists of tensors, and tensors one by one."""
    for shapes in (((2, 3),), ((3,), (2, 1), ()), ((0, 1), (4,))):
        yield Sample(([random_array(rng, shape, dtype) for shape in shapes],))
    yield Sample((random_array(rng, (3, 1), dtype), random_array(rng, (2,), dtype)))


def _axes(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for options in ({}, {"indexing": "ij"}, {"indexing": "xy"}):
        for sizes in ((3,), (2, 3), (2, 3, 4), (0, 2)):
            yield Sample(([random_array(rng, (n,), dtype) for n in sizes],), options)
    yield Sample((random_array(rng, (2,), dtype), random_array(rng, (), dtype)))


def _listed(tensors: tuple) -> Any:
    return tensors[0] if isinstance(tensors[0], list) else tensors


def _pieces(x: np.ndarray, sizes: list[int], dim: int) -> list[np.ndarray]:
    ends = np.cumsum([0, *sizes])
    return [np.take(x, range(a, b), dim) for a, b in pairwise(ends)]


def _split(x: np.ndarray, split: Any, dim: int = 0) -> list[np.ndarray]:
    if isinstance(split, int):
        n = x.shape[dim]
        split = [min(split, n - i) for i in range(0, n, split)] if n else [0]
    return _pieces(x, split, dim)


def _chunk(x: np.ndarray, chunks: int, dim: int = 0) -> list[np.ndarray]:
    n = x.shape[dim]
    return _split(x, -(-n // chunks), dim) if n else _pieces(x, [0] * chunks, dim)


_CUTS = (((5,), 2, 0), ((2, 5), 7, -1), ((5,), [1, 3], 0), ((2, 5), [-2, 9], 1), ((0, 2), 3, 0))


def _cuts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Numbers of sections and places of cuts, as numbers, lists and tensors."""
    for shape, cut, dim in _CUTS:
        x = random_array(rng, shape, dtype)
        yield Sample((x, cut, dim))
        yield Sample((x, np.asarray(cut, np.int64), dim))
    yield Sample((random_array(rng, (5, 2), dtype), 2))


def _padded(x: np.ndarray, pad: tuple, value: Any = 0) -> np.ndarray:
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, x.shape, strict=True))
    return np.pad(x[kept], [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=value)


def _diag_embed(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        out[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def _repeat(x: np.ndarray, *repeats: Any) -> np.ndarray:
    return np.tile(x, repeats[0] if len(repeats) == 1 else repeats)


def _record(name: str, reference: Any, samples: Any, *errors: ErrorSample, **more: Any) -> OpRecord:
    return OpRecord(
        name, reference, samples, ALL, errors=errors, family="shape", **{"gradient": _GRAD, **more}
    )


_ANY = _one_or_many((), (3,), (2, 3), (0,), (2, 1, 3))

RECORDS = [
    _record("atleast_1d", _each(np.atleast_1d), _ANY),
    _record("atleast_2d", _each(np.atleast_2d), _ANY),
    _record("atleast_3d", _each(np.atleast_3d), _ANY),
    _record("broadcast_tensors", lambda *x: list(np.broadcast_arrays(*_listed(x))), _spread,
            wrong_call(_SHAPE, "broadcast_tensors 2 3", [_zeros(2), _zeros(3)])),
    _record("chunk", _chunk,
            calls(((5,), 2), ((5,), 4), ((2, 6), 3, 1), ((2, 3), 5, -1), ((2, 3), 1), ((2, 0), 3, 1)),
            wrong_call(_SHAPE, "chunk 0", _zeros(3), 0),
            wrong_call(IndexError, "1", _zeros(3), 2, 1),
            wrong_call(_SHAPE, "chunk", _zeros(), 1)),
    _record("column_stack", np.column_stack,
            lists((((2,), (2,)),), (((2, 3), (2,)),), (((2, 1, 3), (2, 2, 3)),), (((), ()),), (((0,), (0, 2)),)),
            wrong_call(_SHAPE, "tensors 2 3", [_zeros(2), _zeros(3)]),
            wrong_call(_SHAPE, "tensors", [])),
    _record("constant_pad_nd", _padded,
            calls(((3,), (1, 2)), ((2, 3), (0, 1)), ((2, 3), (1, 0, 0, 2), 1), ((2, 3), (-1, 1), 1),
                  ((2, 3), (-1, -1, 1, -1)), ((2, 0), (1, 1), 1), ((2, 3), ()), ((1, 2, 1), (0, 0, 1, 1, 2, 0))),
            wrong_call(_SHAPE, "constant_pad_nd pad", _zeros(3), (1,)),
            wrong_call(_SHAPE, "constant_pad_nd pad", _zeros(3), (1, 1, 1, 1)),
            wrong_call(_SHAPE, "constant_pad_nd", _zeros(3), (-2, -2))),
    _record("diag_embed", _diag_embed,
            calls(((3,),), ((2, 3),), ((3,), 1), ((2, 3), -2), ((2, 3), 1, 0, 2), ((2, 3), 1, -1, 0), ((2, 0), 1),
                  ((1,),)),
            wrong_call(_SHAPE, "diag_embed dim", _zeros(2, 3), 0, 1, 1),
            wrong_call(IndexError, "3", _zeros(2, 3), 0, 3, 0)),
    _record("dstack", np.dstack,
            lists((((2,), (2,)),), (((), ()),), (((2, 3), (2, 3)),), (((2, 3, 1), (2, 3, 2)),), (((2, 0),),)),
            wrong_call(_SHAPE, "tensors 2 3", [_zeros(2), _zeros(3)]),
            wrong_call(_SHAPE, "tensors", [])),
    _record("fliplr", np.fliplr, calls(((2, 3),), ((2, 1, 3),), ((0, 2),)),
            wrong_call((IndexError, *_SHAPE), "fliplr 2", _zeros(3))),
    _record("flipud", np.flipud, calls(((3,),), ((2, 3),), ((0,),)),
            wrong_call((IndexError, *_SHAPE), "flipud 1", _zeros())),
    _record("meshgrid", lambda *x, indexing="ij": list(np.meshgrid(*_listed(x), indexing=indexing)), _axes,
            wrong_call(_SHAPE, "meshgrid indexing yx", [_zeros(2)], indexing="yx"),
            wrong_call(_SHAPE, "meshgrid", [_zeros(2, 3)])),
    _record("repeat", _repeat,
            calls(((3,), (2,)), ((2, 3), (2, 1)), ((2, 3), 1, 2), ((3,), (2, 2)), ((), (2, 3)), ((), ()), ((3,), (0,)),
                  ((0, 2), (2, 3))),
            wrong_call(_SHAPE, "repeat", _zeros(2, 3), (2,)),
            wrong_call(_SHAPE, "repeat -1", _zeros(3), (-1,))),
    _record("split", _split,
            calls(((5,), 2), ((2, 6), 3, 1), ((2, 3), 7, -1), ((5,), [2, 0, 3]), ((2, 3), [1, 2], -1), ((0, 2), 2)),
            wrong_call(_SHAPE, "split 0", _zeros(3), 0),
            wrong_call(_SHAPE, "split -1", _zeros(3), -1),
            wrong_call(_SHAPE, "split 3 4", _zeros(3), [2, 2]),
            wrong_call(_SHAPE, "split -1", _zeros(3), [4, -1]),
            wrong_call(IndexError, "1", _zeros(3), 2, 1)),
    _record("tensor_split", lambda x, cut, dim=0: np.array_split(x, cut if np.ndim(cut) else int(cut), dim), _cuts,
            wrong_call(_SHAPE, "tensor_split 0", _zeros(3), 0),
            wrong_call(IndexError, "1", _zeros(3), 2, 1),
            wrong_call((TypeError, *_SHAPE), "tensor_split int64", _zeros(3), _zeros(1)),
            wrong_call(_SHAPE, "tensor_split", _zeros(), 1)),
    _record("unbind", lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])],
            calls(((3,),), ((2, 3),), ((2, 3), 1), ((2, 3, 1), -2)),
            wrong_call(IndexError, "2", _zeros(2, 3), 2),
            wrong_call((IndexError, *_SHAPE), "unbind", _zeros())),
]  # fmt: skip
