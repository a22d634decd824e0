"""Records of what only moves elements: views, joining, splitting, padding, diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ALL, NUMBERS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import calls, lists, sized
from taeda_testing.vocabulary import composed
from taeda_testing.wrong import REFUSED, dimension, misfit, wrong_call, zeros


def _record(name: str, reference: Any, samples: Any, *errors: ErrorSample, **more: Any) -> OpRecord:
    """An operator that moves elements of any dtype, and its wrong calls."""
    facts = {"dtypes": ALL, "differentiable": True, "errors": errors, **more}
    return OpRecord(name, reference, samples, **facts)


_TRIANGLES = (((3, 4),), ((3, 4), 1), ((2, 3, 3), -1), ((3, 3), 5), ((0, 2),))

_JOINED = ((((2, 3), (1, 3)), 0), (((2, 3), (2, 1)), -1), (((2, 3),), 0), (((2,), (0,), (1,)), 0))


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


_ANY = _one_or_many((), (3,), (2, 3), (0,), (2, 1, 3))


def _written(place: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A copy with `src` in the part that `place` gives."""

    def call(x: np.ndarray, src: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        made = x.copy()
        place(made, *args, **kwargs)[...] = src
        return made

    return call


def _diagonal(x: np.ndarray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> np.ndarray:
    shown = np.lib.stride_tricks.as_strided(x, writeable=True)
    view = np.diagonal(shown, offset, dim1, dim2)
    view.setflags(write=True)
    return view


def _slice_view(x: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _select(x: np.ndarray, dim: int, index: int) -> np.ndarray:
    return x[(slice(None),) * (dim % x.ndim) + (index, ...)]


def _sources(place: Callable[..., np.ndarray], *cases: tuple[Any, ...]) -> Any:
    """Tensors with a source of the shape of the part; each case is a shape and the arguments that choose the part."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *args in cases:
            x = random_array(rng, shape, dtype)
            yield Sample((x, random_array(rng, place(x, *args).shape, dtype), *args))

    return samples


def _lists(*cases: tuple[tuple[int, ...], ...]) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shapes in cases:
            yield Sample(tuple(random_array(rng, shape, dtype) for shape in shapes))

    return samples


def _blocks(*parts: np.ndarray) -> np.ndarray:
    parts = tuple(np.atleast_2d(part) for part in parts)
    made = np.zeros(np.sum([part.shape for part in parts], 0), parts[0].dtype)
    row = column = 0
    for part in parts:
        made[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return made


def _product(*vectors: np.ndarray) -> np.ndarray:
    if len(vectors) == 1:
        return vectors[0]
    return np.stack([grid.ravel() for grid in np.meshgrid(*vectors, indexing="ij")], 1)


def _sum_to(x: np.ndarray, *size: Any) -> np.ndarray:
    size = size[0] if size and isinstance(size[0], tuple) else size
    lead = x.ndim - len(size)
    dims = (*range(lead), *(lead + d for d, n in enumerate(size) if n == 1 and x.shape[lead + d] != 1))
    return x.sum(dims, keepdims=True, dtype=x.dtype).reshape(size)


_SECTIONS = (2, (1,), (1, 3), (0, 9))


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


def _extended(x, pad, mode="constant", value=None):
    amounts = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    cuts = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(amounts, x.shape, strict=True))
    added = [(max(a, 0), max(b, 0)) for a, b in amounts]
    if mode == "constant":
        return np.pad(x[cuts], added, constant_values=0 if value is None else value)
    return np.pad(x[cuts], added, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def _shuffled(x, r):
    *lead, c, h, w = x.shape
    n, split = len(lead), x.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return split.transpose(order).reshape(*lead, c // (r * r), h * r, w * r)


def _unshuffled(x, r):
    *lead, c, h, w = x.shape
    n, split = len(lead), x.reshape(*lead, c, h // r, r, w // r, r)
    return split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3).reshape(*lead, c * r * r, h // r, w // r)


def _folded(grad, pad, mode):
    """The gradient of `_extended`: each place's number goes to the element that stands there."""
    amounts = [0] * (2 * grad.ndim - len(pad)) + list(pad[::-1])
    shape = tuple(n - a - b for n, a, b in zip(grad.shape, amounts[::2], amounts[1::2], strict=True))
    sources = _extended(np.arange(math.prod(shape)).reshape(shape), pad, mode)
    out = np.zeros(math.prod(shape), grad.dtype)
    np.add.at(out, sources.reshape(-1), grad.reshape(-1))
    return out.reshape(shape)


def _borders(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    # Large enough to be the padded ones, too.
    for shape, pad in (
        ((7,), (1, 2)),
        ((2, 6), (2, 1)),
        ((2, 7, 9), (1, 2, 3, 0)),
        ((2, 3), ()),
        ((4,), (0, 0)),
    ):
        for mode in ("reflect", "replicate", "circular"):
            yield Sample((random_array(rng, shape, dtype), pad, mode))


def _pads(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, pad in (
        ((5,), (1, 2)),
        ((2, 4), (2, 1)),
        ((2, 3, 4), (1, 0, 0, 2)),
        ((2, 3), ()),
        ((4,), (0, 3)),
    ):
        yield Sample((random_array(rng, shape, dtype), pad))
        for mode in ("reflect", "replicate", "circular"):
            yield Sample((random_array(rng, shape, dtype), pad, mode))
    for mode in ("replicate", "circular"):
        yield Sample((random_array(rng, (2, 5), dtype), (-1, 2), mode))
    yield Sample((random_array(rng, (2, 5), dtype), (1, 2), "reflect", 0))
    yield Sample((random_array(rng, (2, 3), dtype), (1, -1, 0, 2), "constant", 1))


RECORDS = [
    _record("reshape", np.reshape, calls(((2, 3), (3, 2)), ((2, 3), (-1,)), ((), (1, 1)), ((2, 0), (0, 5))),
            errors=(ErrorSample((zeros(2, 3), (4,)), {}, REFUSED, ("4",)),)),
    _record("permute", np.transpose, calls(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ())),
            errors=(ErrorSample((zeros(2, 3), (0, 0)), {}, REFUSED, ()),)),
    _record("transpose", np.swapaxes, calls(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((3, 3), 0, 1)), in_place=True,
            errors=dimension("transpose", 0)),
    _record("movedim", np.moveaxis, calls(((2, 3, 4), 0, -1), ((2, 3, 4), (0, 1), (2, 0)), ((3,), 0, 0)),
            errors=( *dimension("movedim", 0),
            wrong_call(REFUSED, "movedim source destination", zeros(2, 3), (0, 1), (0,)),
            wrong_call(REFUSED, "movedim source", zeros(2, 3), (0, 0), (0, 1)), )),
    _record("squeeze", np.squeeze, calls(((2, 1, 3),), ((1, 1),), ((2, 1, 3), 1), ((1, 2, 1), (0, -1)), ((),)),
            errors=dimension("squeeze")),
    _record("squeeze", lambda x, dim: x, calls(((2, 3), 0), ((2, 1, 3), (0, 2)), ((), 0)), in_place=True),
    _record("unsqueeze", np.expand_dims, calls(((2, 3), 0), ((2, 3), -1), ((), 0)),
            errors=(ErrorSample((zeros(2), 5), {}, IndexError, ("5",)),)),
    _record("broadcast_to", np.broadcast_to, calls(((1, 3), (2, 3)), ((3,), (2, 3)), ((), (2,)), ((1,), (0,))),
            errors=(wrong_call(REFUSED, "3 4", zeros(3), (4,)),)),
    _record("flip", np.flip, calls(((2, 3), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (-1,)), ((0, 2), (1,)),
                                   ((2, 1, 3), (1,))),
                                   errors=(*dimension("flip"), wrong_call(REFUSED, "flip dims", zeros(2, 3), (0, 0)))),
    _record("roll", np.roll, calls(((5,), 2), ((2, 3), 1, 1), ((2, 3), (1, -2), (0, 1)), ((2, 3), 4), ((0, 2), 1, 0)),
            errors=( wrong_call(IndexError, "2", zeros(2, 3), 1, 2),
            wrong_call(REFUSED, "roll shifts dims", zeros(2, 3), (1, 2), 0), )),
    _record("tile", np.tile, calls(((2, 3), (2, 1)), ((3,), (2, 2)), ((2, 3), (2,)), ((), (2,)), ((3,), (0,))),
            errors=(wrong_call(REFUSED, "-1", zeros(3), (-1,)),)),
    _record("tril", np.tril, calls(*_TRIANGLES), in_place=True, out=True,
            errors=(wrong_call(REFUSED, "tril self 3", zeros(3)),)),
    _record("triu", np.triu, calls(*_TRIANGLES), in_place=True, out=True,
            errors=(wrong_call(REFUSED, "triu self 3", zeros(3)),)),
    _record("diagonal", np.diagonal, calls(((3, 4),), ((3, 4), 1), ((3, 4), -1), ((2, 3, 3), 0, 1, 2), ((0, 2),)),
            errors=( wrong_call(REFUSED, "diagonal dim", zeros(2, 3), 0, 1, 1),
            wrong_call(IndexError, "2", zeros(2, 3), 0, 0, 2), )),
    _record("diag", np.diag, calls(((3,),), ((3,), 1), ((3, 4),), ((3, 4), -1), ((0,), 1)),
            errors=(wrong_call(REFUSED, "diag self 3", zeros(2, 3, 4)), wrong_call(REFUSED, "diag self", zeros()))),
    _record("rot90", np.rot90, calls(((2, 3),), ((2, 3), 2), ((2, 3, 4), 3, (0, 2)), ((2, 3), -1), ((2, 3), 4)),
            errors=( wrong_call(REFUSED, "rot90 dims", zeros(2, 3), 1, (0,)),
            wrong_call(REFUSED, "rot90 dims", zeros(2, 3), 1, (0, 0)),
            wrong_call(IndexError, "2", zeros(2, 3), 1, (0, 2)), )),
    _record("cat", np.concatenate, lists(*_JOINED), out=True,
            errors=(ErrorSample(([zeros(2, 3), zeros(2, 4)], 0), {}, REFUSED, ("3", "4")),)),
    _record("stack", np.stack, lists((((2, 3), (2, 3)), 0), (((2, 3), (2, 3)), -1), (((), ()), 0)), out=True,
            errors=(ErrorSample(([zeros(2), zeros(3)], 0), {}, REFUSED, ("2", "3")),)),
    _record("hstack", np.hstack, lists((((2,), (3,)),), (((2, 3), (2, 1)),), (((), (2,)),)),
            errors=(wrong_call(REFUSED, "tensors 2 3", [zeros(2, 1), zeros(3, 1)]),
            wrong_call(REFUSED, "tensors", []))),
    _record("vstack", np.vstack, lists((((3,), (3,)),), (((2, 3), (1, 3)),), (((3,), (2, 3)),)),
            errors=(wrong_call(REFUSED, "tensors 2 3", [zeros(2), zeros(3)]), wrong_call(REFUSED, "tensors", []))),
    _record("atleast_1d", _each(np.atleast_1d), _ANY),
    _record("atleast_2d", _each(np.atleast_2d), _ANY),
    _record("atleast_3d", _each(np.atleast_3d), _ANY),
    _record("broadcast_tensors", lambda *x: list(np.broadcast_arrays(*_listed(x))), _spread,
            wrong_call(REFUSED, "broadcast_tensors 2 3", [zeros(2), zeros(3)])),
    _record("chunk", _chunk,
            calls(((5,), 2), ((5,), 4), ((2, 6), 3, 1), ((2, 3), 5, -1), ((2, 3), 1), ((2, 0), 3, 1)),
            wrong_call(REFUSED, "chunk 0", zeros(3), 0),
            wrong_call(IndexError, "1", zeros(3), 2, 1),
            wrong_call(REFUSED, "chunk", zeros(), 1)),
    _record("column_stack", np.column_stack,
            lists((((2,), (2,)),), (((2, 3), (2,)),), (((2, 1, 3), (2, 2, 3)),), (((), ()),), (((0,), (0, 2)),)),
            wrong_call(REFUSED, "tensors 2 3", [zeros(2), zeros(3)]),
            wrong_call(REFUSED, "tensors", [])),
    _record("constant_pad_nd", _padded,
            calls(((3,), (1, 2)), ((2, 3), (0, 1)), ((2, 3), (1, 0, 0, 2), 1), ((2, 3), (-1, 1), 1),
                  ((2, 3), (-1, -1, 1, -1)), ((2, 0), (1, 1), 1), ((2, 3), ()), ((1, 2, 1), (0, 0, 1, 1, 2, 0))),
            wrong_call(REFUSED, "constant_pad_nd pad", zeros(3), (1,)),
            wrong_call(REFUSED, "constant_pad_nd pad", zeros(3), (1, 1, 1, 1)),
            wrong_call(REFUSED, "constant_pad_nd", zeros(3), (-2, -2))),
    _record("diag_embed", _diag_embed,
            calls(((3,),), ((2, 3),), ((3,), 1), ((2, 3), -2), ((2, 3), 1, 0, 2), ((2, 3), 1, -1, 0), ((2, 0), 1),
                  ((1,),)),
            wrong_call(REFUSED, "diag_embed dim", zeros(2, 3), 0, 1, 1),
            wrong_call(IndexError, "3", zeros(2, 3), 0, 3, 0)),
    _record("dstack", np.dstack,
            lists((((2,), (2,)),), (((), ()),), (((2, 3), (2, 3)),), (((2, 3, 1), (2, 3, 2)),), (((2, 0),),)),
            wrong_call(REFUSED, "tensors 2 3", [zeros(2), zeros(3)]),
            wrong_call(REFUSED, "tensors", [])),
    _record("fliplr", np.fliplr, calls(((2, 3),), ((2, 1, 3),), ((0, 2),)),
            wrong_call((IndexError, *REFUSED), "fliplr 2", zeros(3))),
    _record("flipud", np.flipud, calls(((3,),), ((2, 3),), ((0,),)),
            wrong_call((IndexError, *REFUSED), "flipud 1", zeros())),
    _record("meshgrid", lambda *x, indexing="ij": list(np.meshgrid(*_listed(x), indexing=indexing)), _axes,
            wrong_call(REFUSED, "meshgrid indexing yx", [zeros(2)], indexing="yx"),
            wrong_call(REFUSED, "meshgrid", [zeros(2, 3)])),
    _record("repeat", _repeat,
            calls(((3,), (2,)), ((2, 3), (2, 1)), ((2, 3), 1, 2), ((3,), (2, 2)), ((), (2, 3)), ((), ()), ((3,), (0,)),
                  ((0, 2), (2, 3))),
            wrong_call(REFUSED, "repeat", zeros(2, 3), (2,)),
            wrong_call(REFUSED, "repeat -1", zeros(3), (-1,))),
    _record("split", _split,
            calls(((5,), 2), ((2, 6), 3, 1), ((2, 3), 7, -1), ((5,), [2, 0, 3]), ((2, 3), [1, 2], -1), ((0, 2), 2)),
            wrong_call(REFUSED, "split 0", zeros(3), 0),
            wrong_call(REFUSED, "split -1", zeros(3), -1),
            wrong_call(REFUSED, "split 3 4", zeros(3), [2, 2]),
            wrong_call(REFUSED, "split -1", zeros(3), [4, -1]),
            wrong_call(IndexError, "1", zeros(3), 2, 1)),
    _record("tensor_split", lambda x, cut, dim=0: np.array_split(x, cut if np.ndim(cut) else int(cut), dim), _cuts,
            wrong_call(REFUSED, "tensor_split 0", zeros(3), 0),
            wrong_call(IndexError, "1", zeros(3), 2, 1),
            wrong_call((TypeError, *REFUSED), "tensor_split int64", zeros(3), zeros(1)),
            wrong_call(REFUSED, "tensor_split", zeros(), 1)),
    _record("unbind", lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])],
            calls(((3,),), ((2, 3),), ((2, 3), 1), ((2, 3, 1), -2)),
            wrong_call(IndexError, "2", zeros(2, 3), 2),
            wrong_call((IndexError, *REFUSED), "unbind", zeros())),
    _record("adjoint", lambda x: x.conj().swapaxes(-1, -2), calls(((2, 3),), ((2, 1, 3),), ((0, 2),)),
            wrong_call(REFUSED, "adjoint 3", zeros(3))),
    _record("block_diag", _blocks, _lists(((2, 1), (2,), ()), ((1, 2),), ((0, 2), (2, 2))),
            wrong_call(ValueError, "block_diag argument 1", zeros(1), zeros(1, 1, 1))),
    _record("cartesian_prod", _product, _lists(((3,),), ((2,), (3,)), ((2,), (1,), (3,)), ((2,), (0,))),
            wrong_call(REFUSED, "cartesian_prod argument 0", zeros(2, 2))),
    _record("diagflat", lambda x, offset=0: np.diagflat(x, offset), calls(((),), ((3,), 1), ((2, 2), -1), ((0,),))),
    _record("diagonal_scatter", _written(_diagonal),
            _sources(_diagonal, ((3, 4),), ((3, 4), 1), ((4, 3), -2), ((2, 3, 3), 0, 1, 2)),
            wrong_call(REFUSED, "diagonal_scatter src", zeros(3, 3), zeros(2))),
    *(
        _record(name, getattr(np, name), calls(*(((4, 4, 2), cut) for cut in _SECTIONS), ((2, 2, 4), 2)),
                wrong_call(REFUSED, f"{name} indices_or_sections 3", zeros(4, 4, 4), 3),
                wrong_call(REFUSED, f"{name} indices_or_sections 0", zeros(4, 4, 4), 0),
                wrong_call(REFUSED, name, zeros(), 1))
        for name in ("hsplit", "vsplit", "dsplit")
    ),
    _record("narrow_copy", lambda x, dim, start, length: np.take(x, range(start, start + length), dim),
            calls(((5,), 0, 1, 3), ((3, 4), -1, 2, 2), ((2, 0), 0, 1, 1)),
            wrong_call((IndexError, *REFUSED), "narrow 3", zeros(3), 0, 2, 2)),
    _record("select_scatter", _written(_select), _sources(_select, ((3,), 0, 1), ((3, 4), 1, -1), ((2, 3, 2), 1, 0)),
            wrong_call(REFUSED, "select_scatter src", zeros(2, 3), zeros(2), 0, 0),
            wrong_call(IndexError, "2", zeros(2, 3), zeros(3), 0, 2)),
    _record("slice_scatter", _written(_slice_view),
            _sources(_slice_view, ((5,),), ((5,), 0, 1, 4, 2), ((3, 4), -1, -2), ((3, 4), 1, 3, 1)),
            wrong_call(REFUSED, "slice_scatter src", zeros(3), zeros(2)),
            wrong_call(IndexError, "slice_scatter 1", zeros(3), zeros(3), 1),
            wrong_call(ValueError, "slice_scatter step 0", zeros(3), zeros(3), 0, None, None, 0)),
    _record("sum_to_size", _sum_to, calls(((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 3), (2, 3))),
            wrong_call(REFUSED, "sum_to_size", zeros(2, 3), (2,)), dtypes=NUMBERS, exact_dtype=False),
    _record("as_strided", _as_strided,
            calls(((6,), (2, 2), (3, 1)), ((2, 3), (3, 2), (1, 3)), ((6,), (4, 3), (1, 1)), ((6,), (2,), (2,), 1),
                  ((6,), (3,), (-2,), 5), ((6,), (2, 3), (0, 2), 1), ((3,), (), (), 2), ((3,), (0, 2), (2, 1)),
                  ((0,), (0,), (1,), 2)),
            wrong_call(RuntimeError, "as_strided", zeros(4), (3,), (2,)),
            wrong_call(RuntimeError, "as_strided", zeros(4), (2,), (1,), 3),
            wrong_call(REFUSED, "as_strided", zeros(4), (2, 2), (1,)),
            row_major=True),
    _record("detach", np.copy, calls(((),), ((3,),), ((2, 3),), ((0, 2),)), differentiable=False,
            behaviours=("every view shares memory",)),
    _record("expand", _expand, _expansions,
            wrong_call(REFUSED, "expand 3 4", zeros(2, 3), (2, 4)),
            wrong_call(REFUSED, "expand", zeros(2, 3), (3,)),
            wrong_call(REFUSED, "expand -1", zeros(3), (-1, 3))),
    _record("expand_as", lambda x, other: np.broadcast_to(x, other.shape),
            _like(((1, 3), (2, 3)), ((), (2,)), ((2, 1), (3, 2, 0))),
            wrong_call(REFUSED, "expand 3 4", zeros(3), zeros(4))),
    _record("flatten", _flatten,
            calls(((),), ((3,),), ((2, 3, 4),), ((2, 3, 4), 1), ((2, 3, 4), 0, 1), ((2, 3, 4), -2, -1), ((2, 0), 0)),
            wrong_call(REFUSED, "flatten", zeros(2, 3), 1, 0),
            wrong_call(IndexError, "2", zeros(2, 3), 2)),
    _record("narrow", _narrow,
            calls(((5,), 0, 1, 3), ((3, 4), -1, 2, 2), ((3, 4), 1, -3, 2), ((3, 4), 0, 3, 0), ((2, 0), 0, 1, 1)),
            wrong_call((IndexError, *REFUSED), "narrow 3", zeros(3), 0, 2, 2),
            wrong_call((IndexError, *REFUSED), "narrow -1", zeros(3), 0, 0, -1),
            wrong_call(IndexError, "1", zeros(3), 1, 0, 1)),
    _record("ravel", np.ravel, calls(((),), ((3,),), ((2, 3),), ((2, 1, 3),), ((0, 2),))),
    _record("reshape_as", lambda x, other: x.reshape(other.shape), _like(((2, 3), (6,)), ((), (1,)), ((0, 2), (3, 0))),
            wrong_call(REFUSED, "reshape", zeros(2, 3), zeros(4))),
    _record("select", lambda x, dim, index: np.take(x, index, dim), _PART,
            wrong_call(IndexError, "select 3", zeros(3), 0, 3),
            wrong_call(IndexError, "select -4", zeros(3), 0, -4),
            wrong_call(IndexError, "2", zeros(2, 3), 2, 0),
            wrong_call(IndexError, "select", zeros(), 0, 0)),
    _record("set_", lambda x, source: source, _like(((2, 3), (4,)), ((), (2, 2)), ((2,), (0, 3))), differentiable=False,
            row_major=True, writes=(0,), behaviours=("memory of another tensor",)),
    _record("slice", _slice, calls(*_SLICES),
            wrong_call(REFUSED, "slice step", zeros(3), 0, None, None, 0),
            wrong_call(IndexError, "1", zeros(3), 1)),
    _record("swapaxes", np.swapaxes, calls(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((3,), 0, 0)),
            wrong_call(IndexError, "2", zeros(2, 3), 2, 0)),
    _record("t", np.transpose, calls(((),), ((3,),), ((2, 3),), ((0, 1),)),
            wrong_call(REFUSED, "t 3", zeros(2, 3, 4))),
    _record("unflatten", _unflatten,
            calls(((6,), 0, (2, 3)), ((2, 6), -1, (-1, 2)), ((4, 2), 0, (2, 1, 2)), ((0, 3), 0, (0, 2))),
            wrong_call(REFUSED, "unflatten 6", zeros(6), 0, (4, 2)),
            wrong_call(REFUSED, "unflatten", zeros(6), 0, (-1, 4)),
            wrong_call(REFUSED, "unflatten no dimension", zeros(), 0, (-1, 2)),
            wrong_call(IndexError, "1", zeros(6), 1, (2, 3))),
    _record("unfold", _unfold,
            calls(((5,), 0, 2, 1), ((5,), 0, 2, 3), ((5,), -1, 5, 1), ((3, 4), 0, 2, 1), ((2, 4, 3), 1, 3, 1),
                  ((), 0, 1, 1)),
            wrong_call(REFUSED, "unfold 4 3", zeros(3), 0, 4, 1),
            wrong_call(REFUSED, "unfold step 0", zeros(3), 0, 2, 0),
            wrong_call(IndexError, "1", zeros(3), 1, 2, 1)),
    _record("view", lambda x, *size: x.reshape(*size), calls(*_RESHAPES),
            wrong_call(REFUSED, "view 6 4", zeros(2, 3), (4,)),
            wrong_call(REFUSED, "view -1", zeros(2, 3), (-1, -1)),
            row_major=True, behaviours=("views need strides",), half=""),
    _record("view_as", lambda x, other: x.reshape(other.shape), _like(((2, 3), (6,)), ((), (1,)), ((0, 2), (3, 0))),
            wrong_call(REFUSED, "view", zeros(2, 3), zeros(4)),
            row_major=True),
    OpRecord("view", lambda x, dtype: x.view(dtype), _reinterpreted, NUMBERS, row_major=True,
             errors=(wrong_call(REFUSED, "view", np.zeros((2, 3), np.int8), np.dtype("int16")),), half=""),
    composed("pad", _extended, _pads, ALL, namespace="ops", errors=(
        *misfit("pad", (3,), [1], words=("pad", "even")),
        *misfit("pad", (3,), [3, 0], "reflect", words=("pad", "3", "reflect")),
        *misfit("pad", (3,), [4, 0], "circular", words=("pad", "4", "circular")),
        *misfit("pad", (3,), [1, 1], "reflect", 1.0, words=("value", "reflect")),
        *misfit("pad", (3,), [1, 1], "constant", 1 + 0j, error=TypeError, words=("value", "complex")),
        *misfit("pad", (3,), [1, 1], "mirror", error=NotImplementedError, words=("mode", "mirror")),
    )),
    composed("pad_borders", _extended, _borders, ALL, namespace="ops", errors=(
        *misfit("pad_borders", (3,), [1], "reflect", words=("pad_borders", "pad")),
        *misfit("pad_borders", (3,), [-1, 1], "replicate", words=("pad_borders", "pad")),
        *misfit("pad_borders", (3,), [3, 0], "reflect", words=("pad", "3", "reflect")),
        *misfit("pad_borders", (3,), [1, 1], "mirror", error=NotImplementedError, words=("mode", "mirror")),
    )),
    composed("pad_borders_backward", _folded, _borders, NUMBERS, namespace="ops", errors=(
        *misfit("pad_borders_backward", (3,), [1], "reflect", words=("pad_borders_backward", "pad")),
        *misfit("pad_borders_backward", (3,), [2, 2], "reflect", words=("pad", "reflect")),
    )),
    composed("pixel_shuffle", _shuffled, sized(((8, 2, 3), 2), ((2, 9, 1, 2), 3), ((4, 3, 3), 1), ((0, 4, 1, 1), 2)),
            ALL, errors=(
        *misfit("pixel_shuffle", (6, 2, 2), 2, words=("(6, 2, 2)", "2")),
        *misfit("pixel_shuffle", (2, 2), 1, words=("(2, 2)",)),
        *misfit("pixel_shuffle", (4, 2, 2), 0, words=("upscale_factor", "0")),
    )),
    composed("pixel_unshuffle", _unshuffled, sized(((2, 4, 6), 2), ((2, 1, 3, 6), 3), ((4, 3, 3), 1)),
            ALL, errors=(
        *misfit("pixel_unshuffle", (1, 3, 4), 2, words=("(1, 3, 4)", "2")),
        *misfit("pixel_unshuffle", (1, 4, 4), -2, words=("downscale_factor", "-2")),
    )),
]  # fmt: skip
