"""Records of copies, conversions and fills, and of complex numbers as pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import ALL, COMPLEX, FLOATS, NUMBERS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import SPECIAL, binary, unary
from taeda_testing.wrong import wrong_call

_GRAD = ("float64",)
_SHAPE = (RuntimeError, ValueError)


def _zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def _converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The imaginary part is dropped, but counts for truth."""
    return (x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)


def _conversions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """From every dtype, values that both can hold. Differences need float64 at both ends."""
    target = np.dtype(dtype)
    for source in ALL:
        for shape in ((), (5,), (2, 3), (0, 2)):
            array = random_array(rng, shape, source, -4 if target.kind in "ifc" else 0, 4)
            yield Sample((array, target), {}, "" if source == dtype else "rounds")
        if np.dtype(source).kind in "fc" and target.kind in "bfc":
            yield Sample((np.array(SPECIAL[:-2], source), target), {}, "special values")


def _copied(x: np.ndarray, src: Any, non_blocking: bool = False) -> np.ndarray:
    return np.broadcast_to(_converted(np.asarray(src), x.dtype), x.shape)


_PAIRS = (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), ()), ((3, 2), (3, 1)), ((0, 2), (2,)))


def _copies(*sources: str, extras: bool = False) -> Callable[..., Iterator[Sample]]:
    """Into a tensor from one of the same dtype and of others, broadcast."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for source in (dtype, *sources):
            note = "" if source == "float64" else "rounds"
            for shape, given in _PAIRS:
                yield Sample((np.zeros(shape, dtype), random_array(rng, given, source, 0, 4)), {}, note)
        if extras:
            yield Sample((np.zeros((2, 3), dtype), 1), {}, "a number")
            yield Sample((np.zeros(3, dtype), np.ones(3, dtype)), {"non_blocking": True})

    return samples


def _fills(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """A tensor without dimensions, and a number."""
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype), random_array(rng, (), dtype)))
        yield Sample((random_array(rng, shape, dtype), 1), {}, "a number")


def _formats(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype),))
    for name in ("contiguous_format", "preserve_format", "channels_last"):
        yield Sample((random_array(rng, (2, 3, 2, 2), dtype),), {"memory_format": name})


def _complex_of(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    return (real + 1j * imag.astype(np.result_type(imag, 1j))).astype(np.result_type(real, 1j))


def _pairs(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((2,), (3, 2), (0, 2), (2, 3, 2)):
        yield Sample((random_array(rng, shape, dtype),))


def _record(
    name: str, reference: Any, samples: Any, *errors: ErrorSample, dtypes: Any = ALL, **more: Any
) -> OpRecord:
    return OpRecord(name, reference, samples, dtypes, errors=errors, **{"family": "cast", **more})


def _full(x: np.ndarray, value: Any) -> np.ndarray:
    return np.full(x.shape, value, x.dtype)


RECORDS = [
    _record("cast", _converted, _conversions, namespace="ops", gradient=_GRAD),
    _record("contiguous", lambda x, memory_format="": x, _formats,
            wrong_call((TypeError, *_SHAPE), "memory_format rows", _zeros(2, 3), memory_format="rows"),
            wrong_call(_SHAPE, "channels_last 4", _zeros(2, 3), memory_format="channels_last"), gradient=_GRAD),
    _record("copy_", _copied, _copies("int32", "float32", extras=True),
            wrong_call(_SHAPE, "copy_ 2 3", _zeros(2), _zeros(3)), gradient=_GRAD, constant=(0,), writes=(0,)),
    _record("copy_", _copied, _copies("complex64"), dtypes=COMPLEX, writes=(0,)),
    _record("copy_same_", _copied, _copies("int32", "float32"), namespace="ops", gradient=_GRAD, constant=(0,),
            writes=(0,)),
    _record("fill", _full, _fills, wrong_call(_SHAPE, "fill 2", _zeros(2), _zeros(2)), gradient=_GRAD, in_place=True),
    _record("fill_", _full, _fills, wrong_call(_SHAPE, "fill_ value 2", _zeros(2), _zeros(2)), gradient=_GRAD,
            constant=(0,), writes=(0,)),
    _record("to_device", lambda x: x, unary(), creates=True, namespace="ops"),
    _record("to_dtype", _converted, _conversions, gradient=_GRAD),
    _record("zero_", np.zeros_like, unary(), writes=(0,)),
    _record("complex", _complex_of, binary(),
            wrong_call(TypeError, "complex real imag int64", _zeros(2, dtype=np.int64), _zeros(2, dtype=np.int64)),
            wrong_call((TypeError, RuntimeError), "complex float32 float64", _zeros(2), _zeros(2, dtype=np.float64)),
            wrong_call(_SHAPE, "complex 2 3", _zeros(2), _zeros(3)), dtypes=FLOATS, family="creation"),
    _record("polar", lambda r, phi: _complex_of(r * np.cos(phi), r * np.sin(phi)), binary(),
            wrong_call(_SHAPE, "2 3", _zeros(2), _zeros(3)), dtypes=FLOATS, family="unary"),
    _record("view_as_complex", lambda x: _complex_of(x[..., 0], x[..., 1]), _pairs,
            wrong_call(_SHAPE, "view_as_complex 3", _zeros(2, 3)),
            wrong_call(_SHAPE, "view_as_complex", _zeros()),
            wrong_call((TypeError, RuntimeError), "view_as_complex int64", _zeros(2, dtype=np.int64)),
            dtypes=FLOATS, row_major=True, family="unary"),
    _record("view_as_real", lambda x: np.stack([x.real, x.imag], -1), unary(),
            wrong_call((TypeError, RuntimeError), "view_as_real float32", _zeros(2)), dtypes=COMPLEX, family="unary"),
    _record("positive", np.copy, unary(), wrong_call((TypeError, RuntimeError), "positive bool", _zeros(2, dtype=bool)),
            dtypes=NUMBERS, gradient=_GRAD, family="arith"),
    _record("isreal", np.isreal, unary(special=True), dtypes=ALL, family="compare"),
]  # fmt: skip
