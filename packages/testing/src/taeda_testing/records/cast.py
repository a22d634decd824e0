"""Records of copies, conversions and fills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import ALL, COMPLEX, OpRecord, Sample
from taeda_testing.sampling import SPECIAL, unary
from taeda_testing.vocabulary import with_errors
from taeda_testing.wrong import REFUSED, wrong_call, zeros


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


def _full(x: np.ndarray, value: Any) -> np.ndarray:
    return np.full(x.shape, value, x.dtype)


def _clones(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype),))


RECORDS = [
    with_errors("cast", _converted, _conversions, namespace="ops", differentiable=True, behaviours=("casts",)),
    with_errors("contiguous", lambda x, memory_format="": x, _formats,
            wrong_call((TypeError, *REFUSED), "memory_format rows", zeros(2, 3), memory_format="rows"),
            wrong_call(REFUSED, "channels_last 4", zeros(2, 3), memory_format="channels_last"), differentiable=True,
            behaviours=("layouts",)),
    with_errors("copy_", _copied, _copies("int32", "float32", extras=True),
            wrong_call(REFUSED, "copy_ 2 3", zeros(2), zeros(3)), differentiable=True, constant=(0,), writes=(0,),
            behaviours=("copies", "gradients across devices and dtypes")),
    with_errors("copy_", _copied, _copies("complex64"), dtypes=COMPLEX, writes=(0,)),
    with_errors("copy_same_", _copied, _copies("int32", "float32"), namespace="ops", differentiable=True, constant=(0,),
            writes=(0,), behaviours=("copies",)),
    with_errors("fill", _full, _fills, wrong_call(REFUSED, "fill 2", zeros(2), zeros(2)), differentiable=True,
            in_place=True),
    with_errors("fill_", _full, _fills, wrong_call(REFUSED, "fill_ value 2", zeros(2), zeros(2)), differentiable=True,
            constant=(0,), writes=(0,), behaviours=("fills",)),
    with_errors("to_device", lambda x: x, unary(), creates=True, namespace="ops",
            behaviours=("round trip", "gradients across devices and dtypes")),
    with_errors("to_dtype", _converted, _conversions, differentiable=True),
    with_errors("zero_", np.zeros_like, unary(), writes=(0,)),
    OpRecord("clone", np.copy, _clones, ALL, differentiable=True),
]  # fmt: skip
