"""Records of views, of parts of tensors, and of what changes only the shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, NUMBERS, ErrorSample, OpRecord, Sample
from taeda_testing.records.shape import calls
from taeda_testing.wrong import wrong_call

_GRAD = ("float64",)
_SHAPE = (RuntimeError, ValueError)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _as_strided(x: np.ndarray, size: tuple, stride: tuple, storage_offset: int = 0) -> np.ndarray:
    flat, out = x.ravel(), np.zeros(size, x.dtype)
    for at in np.ndindex(*size):
        out[at] = flat[storage_offset + sum(i * s for i, s in zip(at, stride, strict=True))]
    return out


def _expand(x: np.ndarray, *size: Any, implicit: bool = False) -> np.ndarray:
    size = size[0] if isinstance(size[0], tuple) else size
    kept = (1,) * (len(size) - x.ndim) + x.shape
    return np.broadcast_to(x, [k if s == -1 else s for s, k in zip(size, kept, strict=True)])


def _flatten(x: np.ndarray, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape((*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :]))


def _unflatten(x: np.ndarray, dim: int, sizes: tuple) -> np.ndarray:
    dim %= x.ndim
    known = -int(np.prod(sizes))
    sizes = tuple(x.shape[dim] // known if s == -1 else s for s in sizes)
    return x.reshape((*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


def _narrow(x: np.ndarray, dim: int, start: int, length: int) -> np.ndarray:
    start += x.shape[dim] if start < 0 else 0
    return np.take(x, range(start, start + length), dim)


def _slice(x: np.ndarray, dim: int = 0, start: Any = None, stop: Any = None, step: int = 1) -> np.ndarray:
    return np.take(x, range(x.shape[dim])[start:stop:step], dim)


def _unfold(x: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    starts = range(0, x.shape[dimension] - size + 1, step)
    windows = [np.moveaxis(np.take(x, range(s, s + size), dimension), dimension, -1) for s in starts]
    return np.stack(windows, dimension % x.ndim)


def _like(*pairs: tuple[tuple[int, ...], tuple[int, ...]]) -> Callable[..., Iterator[Sample]]:
    """A tensor, and another one whose shape it gets."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, other in pairs:
            yield Sample((random_array(rng, shape, dtype), np.zeros(other, dtype)))

    return samples


def _expansions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    shapes = (((1, 3), (2, 3)), ((3,), (2, -1)), ((3, 1), -1, 4), ((), (2, 1)), ((), ()), ((1, 2), (0, 2)))
    yield from calls(*shapes)(dtype, rng)
    yield Sample((random_array(rng, (2, 1), dtype), (2, 3)), {"implicit": True})


def _reinterpreted(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Bytes of elements of the same and of other sizes."""
    target = np.dtype(dtype)
    for source in ("uint8", "int16", "float32", "int64", "complex128"):
        for shape in ((3, 16), (0, 16), *[()] * (np.dtype(source).itemsize == target.itemsize)):
            yield Sample((random_array(rng, shape, source), target))


def _record(name: str, reference: Any, samples: Any, *errors: ErrorSample, **more: Any) -> OpRecord:
    return OpRecord(
        name, reference, samples, ALL, errors=errors, family="shape", **{"gradient": _GRAD, **more}
    )


_RESHAPES = (((2, 3), (3, 2)), ((6,), (2, -1)), ((), (1, 1)), ((1,), ()), ((2, 0), (0, 5)), ((2, 3), 3, 2))
_PART = calls(((4,), 0, 2), ((3, 4), -1, -4), ((2, 3, 4), 1, 0), ((0, 3), 1, -1))
_SLICES = (
    ((5,),),
    ((5,), 0, 1),
    ((5,), 0, None, 3),
    ((5,), 0, -3, -1),
    ((5,), 0, 4, 1),
    ((5,), 0, -9, 9, 2),
    ((3, 5), 1, None, None, 3),
    ((3, 5), -1, None, None, -1),
    ((3, 5), 1, 3, 0, -2),
    ((2, 0), 1, 1, 3),
)

RECORDS = [
    _record("as_strided", _as_strided,
            calls(((6,), (2, 2), (3, 1)), ((2, 3), (3, 2), (1, 3)), ((6,), (4, 3), (1, 1)), ((6,), (2,), (2,), 1),
                  ((6,), (3,), (-2,), 5), ((6,), (2, 3), (0, 2), 1), ((3,), (), (), 2), ((3,), (0, 2), (2, 1)),
                  ((0,), (0,), (1,), 2)),
            wrong_call(RuntimeError, "as_strided", _zeros(4), (3,), (2,)),
            wrong_call(RuntimeError, "as_strided", _zeros(4), (2,), (1,), 3),
            wrong_call(_SHAPE, "as_strided", _zeros(4), (2, 2), (1,)),
            row_major=True),
    _record("detach", np.copy, calls(((),), ((3,),), ((2, 3),), ((0, 2),)), gradient=()),
    _record("expand", _expand, _expansions,
            wrong_call(_SHAPE, "expand 3 4", _zeros(2, 3), (2, 4)),
            wrong_call(_SHAPE, "expand", _zeros(2, 3), (3,)),
            wrong_call(_SHAPE, "expand -1", _zeros(3), (-1, 3))),
    _record("expand_as", lambda x, other: np.broadcast_to(x, other.shape),
            _like(((1, 3), (2, 3)), ((), (2,)), ((2, 1), (3, 2, 0))),
            wrong_call(_SHAPE, "expand 3 4", _zeros(3), _zeros(4))),
    _record("flatten", _flatten,
            calls(((),), ((3,),), ((2, 3, 4),), ((2, 3, 4), 1), ((2, 3, 4), 0, 1), ((2, 3, 4), -2, -1), ((2, 0), 0)),
            wrong_call(_SHAPE, "flatten", _zeros(2, 3), 1, 0),
            wrong_call(IndexError, "2", _zeros(2, 3), 2)),
    _record("narrow", _narrow,
            calls(((5,), 0, 1, 3), ((3, 4), -1, 2, 2), ((3, 4), 1, -3, 2), ((3, 4), 0, 3, 0), ((2, 0), 0, 1, 1)),
            wrong_call((IndexError, *_SHAPE), "narrow 3", _zeros(3), 0, 2, 2),
            wrong_call((IndexError, *_SHAPE), "narrow -1", _zeros(3), 0, 0, -1),
            wrong_call(IndexError, "1", _zeros(3), 1, 0, 1)),
    _record("ravel", np.ravel, calls(((),), ((3,),), ((2, 3),), ((2, 1, 3),), ((0, 2),))),
    _record("reshape_as", lambda x, other: x.reshape(other.shape), _like(((2, 3), (6,)), ((), (1,)), ((0, 2), (3, 0))),
            wrong_call(_SHAPE, "reshape", _zeros(2, 3), _zeros(4))),
    _record("select", lambda x, dim, index: np.take(x, index, dim), _PART,
            wrong_call(IndexError, "select 3", _zeros(3), 0, 3),
            wrong_call(IndexError, "select -4", _zeros(3), 0, -4),
            wrong_call(IndexError, "2", _zeros(2, 3), 2, 0),
            wrong_call(IndexError, "select", _zeros(), 0, 0)),
    _record("slice", _slice, calls(*_SLICES),
            wrong_call(_SHAPE, "slice step", _zeros(3), 0, None, None, 0),
            wrong_call(IndexError, "1", _zeros(3), 1)),
    _record("swapaxes", np.swapaxes, calls(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((3,), 0, 0)),
            wrong_call(IndexError, "2", _zeros(2, 3), 2, 0)),
    _record("t", np.transpose, calls(((),), ((3,),), ((2, 3),), ((0, 1),)),
            wrong_call(_SHAPE, "t 3", _zeros(2, 3, 4))),
    _record("unflatten", _unflatten,
            calls(((6,), 0, (2, 3)), ((2, 6), -1, (-1, 2)), ((4, 2), 0, (2, 1, 2)), ((0, 3), 0, (0, 2))),
            wrong_call(_SHAPE, "unflatten 6", _zeros(6), 0, (4, 2)),
            wrong_call(_SHAPE, "unflatten", _zeros(6), 0, (-1, 4)),
            wrong_call(IndexError, "1", _zeros(6), 1, (2, 3))),
    _record("unfold", _unfold,
            calls(((5,), 0, 2, 1), ((5,), 0, 2, 3), ((5,), -1, 5, 1), ((3, 4), 0, 2, 1), ((2, 4, 3), 1, 3, 1),
                  ((), 0, 1, 1)),
            wrong_call(_SHAPE, "unfold 4 3", _zeros(3), 0, 4, 1),
            wrong_call(_SHAPE, "unfold step 0", _zeros(3), 0, 2, 0),
            wrong_call(IndexError, "1", _zeros(3), 1, 2, 1)),
    _record("view", lambda x, *size: x.reshape(*size), calls(*_RESHAPES),
            wrong_call(_SHAPE, "view 6 4", _zeros(2, 3), (4,)),
            wrong_call(_SHAPE, "view -1", _zeros(2, 3), (-1, -1)),
            row_major=True),
    _record("view_as", lambda x, other: x.reshape(other.shape), _like(((2, 3), (6,)), ((), (1,)), ((0, 2), (3, 0))),
            wrong_call(_SHAPE, "view", _zeros(2, 3), _zeros(4)),
            row_major=True),
    OpRecord("view", lambda x, dtype: x.view(dtype), _reinterpreted, NUMBERS, row_major=True, family="shape",
             errors=(wrong_call(_SHAPE, "view", np.zeros((2, 3), np.int8), np.dtype("int16")),)),
]  # fmt: skip
