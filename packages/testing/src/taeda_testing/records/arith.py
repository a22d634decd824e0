"""Records of arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import (
    COMPLEX,
    FLOATS,
    FLOATS_AND_COMPLEX,
    INTEGERS,
    NUMBERS,
    REALS,
    ErrorSample,
    OpRecord,
    Sample,
)
from taeda_testing.sampling import binary, float_result, over, unary, with_numbers
from taeda_testing.vocabulary import (
    WITH_INEXACT_RESULT,
    differentiable,
    function_of_one,
    function_of_two,
    with_errors,
)
from taeda_testing.wrong import wrong_call, zeros


@over(binary(special=True).domains)
def _scaled(dtype, rng):
    """Pairs without and with a factor of the second operand."""
    yield from binary(special=True)(dtype, rng)
    factors = {"u": (2, 0), "i": (-2, 0), "f": (-2, 0.5), "c": (-0.5, 1 - 2j)}[np.dtype(dtype).kind]
    for factor, sample in zip(factors, binary()(dtype, rng), strict=False):
        yield Sample(sample.args, {"alpha": factor})
        yield Sample(
            (rng.permutation(12).astype(dtype).reshape(3, 4), np.arange(4).astype(dtype)), {"alpha": factor}
        )


def _times(b, alpha):
    return b * np.asarray(alpha).astype(b.dtype)


_ALPHA_ERRORS = (
    ErrorSample((np.int32([1]), np.int32([1])), {"alpha": 0.5}, RuntimeError, ("alpha", "integer", "int32")),
    ErrorSample(
        (np.float32([1]), np.float32([1])), {"alpha": 1j}, RuntimeError, ("alpha", "real", "float32")
    ),
)

_ALPHA = {"samples": _scaled, "errors": _ALPHA_ERRORS}

_APART = binary(0.5, 4, other=(1, 3))


def _limits(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype), 1))
    yield Sample((random_array(rng, (3, 4), dtype), random_array(rng, (3, 4), dtype)))


def _sign(x: np.ndarray) -> np.ndarray:
    if not np.iscomplexobj(x):
        return ((x > 0).astype(np.int8) - (x < 0).astype(np.int8)).astype(x.dtype)  # 0 for NaN
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.trunc(np.true_divide(a, b)).astype(a.dtype)


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
    shape = (3, 4)
    low, high = random_array(rng, shape, dtype, -4, -1), random_array(rng, shape, dtype, 1, 4)
    yield Sample((random_array(rng, shape, dtype), low, high))


def _clamp(x, low, high):
    out = x if low is None else np.maximum(x, np.asarray(low, x.dtype))
    return out if high is None else np.minimum(out, np.asarray(high, x.dtype))


def log_add_exp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(exp(a) + exp(b)), which NumPy has for real numbers only; the angle is not brought to +-pi."""
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        return np.logaddexp(a, b)
    first = np.real(a) > np.real(b)
    high, low = np.where(first, a, b), np.where(first, b, a)
    return high + np.log1p(np.exp(low - high))


RECORDS = [
    function_of_two("add", lambda a, b, alpha=1: a + _times(b, alpha), **_ALPHA),
    function_of_two("sub", lambda a, b, alpha=1: a - _times(b, alpha), **_ALPHA),
    function_of_two("mul", np.multiply, half="largest"),
    function_of_two("div", float_result(np.true_divide), ("int32", "uint8", *FLOATS, *COMPLEX), samples=_APART,
            half="largest"),
    function_of_two("floor_divide", np.floor_divide, REALS, samples=_APART, differentiable=False),
    function_of_two("remainder", np.remainder, REALS, samples=binary(-4, 4, other=(1, 3))),
    function_of_two("fmod", np.fmod, REALS, samples=binary(-4, 4, other=(1, 3))),
    function_of_two("pow", np.power, (*INTEGERS, *FLOATS, *COMPLEX),
            samples=with_numbers(binary(0.5, 3, other=(0, 3)), 3),
            half="largest"),
    function_of_two("maximum", np.maximum, REALS, in_place=False),
    function_of_two("minimum", np.minimum, REALS, in_place=False),
    function_of_two("fmax", np.fmax, FLOATS, in_place=False),
    function_of_two("fmin", np.fmin, FLOATS, in_place=False),
    function_of_two("hypot", np.hypot, FLOATS, half="largest"),
    function_of_two("copysign", np.copysign, FLOATS),
    function_of_two(
        "nextafter",
        np.nextafter,
        FLOATS,
        differentiable=False,
        rtol={"float32": 0, "float64": 0},
        atol={"float32": 0, "float64": 0},
    ),
    function_of_two("logaddexp", log_add_exp, (*FLOATS, *COMPLEX), samples=binary(), in_place=False),
    function_of_two("logaddexp2", np.logaddexp2, FLOATS, samples=binary(), in_place=False),
    function_of_two("gcd", np.gcd, INTEGERS, samples=binary(0, 12), differentiable=False),
    function_of_two("lcm", np.lcm, INTEGERS, samples=binary(0, 9), differentiable=False),
    function_of_two("heaviside", np.heaviside, FLOATS, samples=binary(), differentiable=False),
    with_errors("positive", np.copy, unary(),
            wrong_call((TypeError, RuntimeError), "positive bool", zeros(2, dtype=bool)), dtypes=NUMBERS,
            differentiable=True),
    differentiable("clamp_min", lambda x, low: np.maximum(x, np.asarray(low, x.dtype)), _limits, REALS,
             in_place=True),
    differentiable("clamp_max", lambda x, high: np.minimum(x, np.asarray(high, x.dtype)), _limits, REALS,
             in_place=True),
    differentiable("sgn", _sign, unary(1, 4), NUMBERS, in_place=True, out=True),
    OpRecord("trunc_divide", _truncated, binary(-9, 9, other=(1, 4)), REALS, namespace="ops"),
    differentiable("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype), _three(), NUMBERS),
    differentiable("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype), _three(value=2), FLOATS),
    differentiable("addcmul", lambda x, a, b, value=1: (x + value * a * b).astype(x.dtype),
            _three(value=1 - 2j), COMPLEX),
    differentiable("addcdiv", lambda x, a, b, value=1: (x + value * a / b).astype(x.dtype),
            _three(last=(1, 2), value=1 - 2j), COMPLEX),
    differentiable("addcdiv", lambda x, a, b, value=1: x + value * a / b, _three(last=(1, 2)), FLOATS_AND_COMPLEX),
    differentiable("lerp", lambda a, b, w: a + np.asarray(w, a.dtype) * (b - a),
            with_numbers(_three(last=(0, 1)), 0.25), FLOATS_AND_COMPLEX,
            atol={"float32": 1e-5}),
    differentiable("clamp", _clamp, _bounds, REALS, in_place=True, out=True),
    differentiable("xlogy", special.xlogy, binary(0.5, 3), FLOATS),
    differentiable(
        "ldexp", lambda a, b: (a * 2.0**b).astype(a.dtype), binary(-2, 2), FLOATS_AND_COMPLEX, half="largest"
    ),
    OpRecord("float_power", lambda a, b: np.float_power(a, b), binary(0.5, 3), ("int32", *FLOATS_AND_COMPLEX)),
    differentiable("rsub", lambda a, b: np.asarray(b, a.dtype) - a, with_numbers(binary(), 2), NUMBERS),
    function_of_one("sqrt", np.sqrt, 0.1, 9, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("reciprocal", lambda x: 1 / x, 0.5, 4, dtypes=WITH_INEXACT_RESULT, half="largest"),
    differentiable("square", np.square, unary(special=True), (*REALS, *COMPLEX)),
    differentiable("abs", np.abs, unary(special=True), (*REALS, *COMPLEX)),
    OpRecord(
        "neg",
        np.negative,
        unary(special=True),
        (*REALS, *COMPLEX),
        differentiable=True,
        in_place=True,
        out=True,
    ),
    differentiable("sign", _sign, unary(), REALS, in_place=True, out=True),
]  # fmt: skip
