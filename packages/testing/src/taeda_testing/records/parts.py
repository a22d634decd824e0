"""Records of tensors cut into parts and made of parts: splits by axis, copies with a part replaced, block matrices."""

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


def _record(
    name: str, function: Callable[..., Any], samples: Any, *errors: ErrorSample, **more: Any
) -> OpRecord:
    return OpRecord(
        name,
        function,
        samples,
        **{"dtypes": ALL, "gradient": _GRAD, "family": "shape", **more},
        errors=errors,
    )


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


def _slice(x: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> np.ndarray:
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


_CUTS = (2, (1,), (1, 3), (0, 9))

RECORDS = [
    _record("adjoint", lambda x: x.conj().swapaxes(-1, -2), calls(((2, 3),), ((2, 1, 3),), ((0, 2),)),
            wrong_call(_SHAPE, "adjoint 3", _zeros(3))),
    _record("block_diag", _blocks, _lists(((2, 1), (2,), ()), ((1, 2),), ((0, 2), (2, 2))),
            wrong_call(ValueError, "block_diag argument 1", _zeros(1), _zeros(1, 1, 1))),
    _record("cartesian_prod", _product, _lists(((3,),), ((2,), (3,)), ((2,), (1,), (3,)), ((2,), (0,))),
            wrong_call(_SHAPE, "cartesian_prod argument 0", _zeros(2, 2))),
    _record("diagflat", lambda x, offset=0: np.diagflat(x, offset), calls(((),), ((3,), 1), ((2, 2), -1), ((0,),))),
    _record("diagonal_scatter", _written(_diagonal),
            _sources(_diagonal, ((3, 4),), ((3, 4), 1), ((4, 3), -2), ((2, 3, 3), 0, 1, 2)),
            wrong_call(_SHAPE, "diagonal_scatter src", _zeros(3, 3), _zeros(2))),
    *(
        _record(name, getattr(np, name), calls(*(((4, 4, 2), cut) for cut in _CUTS), ((2, 2, 4), 2)),
                wrong_call(_SHAPE, f"{name} indices_or_sections 3", _zeros(4, 4, 4), 3),
                wrong_call(_SHAPE, f"{name} indices_or_sections 0", _zeros(4, 4, 4), 0),
                wrong_call(_SHAPE, name, _zeros(), 1))
        for name in ("hsplit", "vsplit", "dsplit")
    ),
    _record("narrow_copy", lambda x, dim, start, length: np.take(x, range(start, start + length), dim),
            calls(((5,), 0, 1, 3), ((3, 4), -1, 2, 2), ((2, 0), 0, 1, 1)),
            wrong_call((IndexError, *_SHAPE), "narrow 3", _zeros(3), 0, 2, 2)),
    _record("select_scatter", _written(_select), _sources(_select, ((3,), 0, 1), ((3, 4), 1, -1), ((2, 3, 2), 1, 0)),
            wrong_call(_SHAPE, "select_scatter src", _zeros(2, 3), _zeros(2), 0, 0),
            wrong_call(IndexError, "2", _zeros(2, 3), _zeros(3), 0, 2)),
    _record("slice_scatter", _written(_slice),
            _sources(_slice, ((5,),), ((5,), 0, 1, 4, 2), ((3, 4), -1, -2), ((3, 4), 1, 3, 1)),
            wrong_call(_SHAPE, "slice_scatter src", _zeros(3), _zeros(2)),
            wrong_call(IndexError, "slice_scatter 1", _zeros(3), _zeros(3), 1),
            wrong_call(ValueError, "slice_scatter step 0", _zeros(3), _zeros(3), 0, None, None, 0)),
    _record("sum_to_size", _sum_to, calls(((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 3), (2, 3))),
            wrong_call(_SHAPE, "sum_to_size", _zeros(2, 3), (2,)), dtypes=NUMBERS, exact_dtype=False),
]  # fmt: skip
