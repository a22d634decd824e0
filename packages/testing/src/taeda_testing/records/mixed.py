"""Records of arithmetic with three operands, clamping, and further functions of one and two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import COMPLEX, FLOATS, FLOATS_AND_COMPLEX, NUMBERS, REALS, OpRecord, Sample
from taeda_testing.sampling import binary, reduction, unary, with_axis

_GRAD = ("float64",)
_SHAPES = (((3,), (3,), (3,)), ((2, 3), (3,), (1, 3)), ((), (), ()), ((0, 2), (2,), (2,)))


def _three(low: float = -3, high: float = 3, last: tuple[float, float] | None = None, **kwargs):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b, c in _SHAPES:
            arrays = (random_array(rng, a, dtype, low, high), random_array(rng, b, dtype, low, high))
            yield Sample((*arrays, random_array(rng, c, dtype, *(last or (low, high)))), dict(kwargs))

    return samples


def _bounds(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for low, high in ((1, 3), (None, 2), (1, None)):
        for sample in unary(special=True)(dtype, rng):
            yield Sample((*sample.args, low, high))


def _clamp(x, low, high):
    out = x if low is None else np.maximum(x, np.asarray(low, x.dtype))
    return out if high is None else np.minimum(out, np.asarray(high, x.dtype))


def _close(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in binary(special=True)(dtype, rng):
        a, b = sample.args
        yield Sample((a, np.where(rng.integers(0, 2, np.broadcast(a, b).shape), a, b).astype(dtype)))


def _record(name, reference, samples, dtypes=FLOATS, gradient=_GRAD, **more):
    return OpRecord(name, reference, samples, dtypes, gradient, family="mixed", **more)


def _wide(function):
    return lambda x: np.asarray(function(x.astype(np.float64))).astype(x.dtype)


RECORDS = [
    _record("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype), _three(), NUMBERS),
    _record("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype), _three(value=2), FLOATS),
    _record("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype),
            _three(value=1 - 2j), COMPLEX, ("complex128",)),
    _record("addcdiv", lambda x, a, b, value=1: (x + value * a / b).astype(x.dtype),
            _three(last=(1, 2), value=1 - 2j), COMPLEX, ("complex128",)),
    _record("addcdiv", lambda x, a, b, value=1: x + value * a / b, _three(last=(1, 2)), FLOATS_AND_COMPLEX),
    _record("lerp", lambda a, b, w: a + w * (b - a), _three(last=(0, 1)), FLOATS_AND_COMPLEX, atol={"float32": 1e-5}),
    _record("clamp", _clamp, _bounds, REALS, in_place=True, out=True),
    _record("isclose", np.isclose, _close, FLOATS_AND_COMPLEX, ()),
    _record("xlogy", special.xlogy, binary(0.5, 3), FLOATS),
    _record("ldexp", lambda a, b: (a * 2.0**b).astype(a.dtype), binary(-2, 2), FLOATS_AND_COMPLEX, ()),
    _record("float_power", lambda a, b: np.float_power(a, b), binary(0.5, 3), ("int32", *FLOATS_AND_COMPLEX), ()),
    _record("rsub", lambda a, b: b - a, binary(), NUMBERS),
    _record("frac", lambda x: x - np.trunc(x), unary(), FLOATS),
    _record("rad2deg", np.rad2deg, unary(), FLOATS, rtol={"float32": 1e-6}, atol={"float32": 1e-4}),
    _record("nan_to_num", lambda x: np.nan_to_num(x, nan=0.0), unary(special=True), FLOATS_AND_COMPLEX),
    _record("logit", _wide(special.logit), unary(0.1, 0.9), FLOATS),
    _record("i0", _wide(special.i0), unary(), FLOATS),
    _record("i1", _wide(special.i1), unary(), FLOATS),
    _record("i0e", _wide(special.i0e), unary(), FLOATS),
    _record("i1e", _wide(special.i1e), unary(), FLOATS),
    _record("angle", np.angle, unary(), (*FLOATS, *COMPLEX)),
    _record("real", np.real, unary(), (*FLOATS, *COMPLEX)),
    _record("imag", np.imag, unary(), COMPLEX, ("complex128",)),
    _record("isposinf", np.isposinf, unary(special=True), FLOATS, ()),
    _record("isneginf", np.isneginf, unary(special=True), FLOATS, ()),
    _record("nansum", with_axis(np.nansum), reduction(), FLOATS_AND_COMPLEX, rtol={"float32": 1e-4}),
    _record("nanmean", with_axis(np.nanmean), reduction(empty=False), FLOATS_AND_COMPLEX, rtol={"float32": 1e-4}),
]  # fmt: skip
