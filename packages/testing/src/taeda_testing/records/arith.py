"""Records of element-wise arithmetic with two and three operands."""

from __future__ import annotations

import numpy as np

from taeda_testing.record import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import binary, float_result

_GRAD = ("float64",)


def _arith(name, function, dtypes=NUMBERS, **more):
    options = {"gradient": _GRAD, "in_place": True, "out": True, "family": "arith", **more}
    return OpRecord(name, function, options.pop("samples", binary(special=True)), dtypes, **options)


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

RECORDS = [
    _arith("add", lambda a, b, alpha=1: a + _times(b, alpha), **_ALPHA),
    _arith("sub", lambda a, b, alpha=1: a - _times(b, alpha), **_ALPHA),
    _arith("mul", np.multiply),
    _arith("div", float_result(np.true_divide), ("int32", "uint8", *FLOATS, *COMPLEX), samples=_APART),
    _arith("floor_divide", np.floor_divide, REALS, samples=_APART, gradient=()),
    _arith("remainder", np.remainder, REALS, samples=binary(-4, 4, other=(1, 3)), gradient=()),
    _arith("fmod", np.fmod, REALS, samples=binary(-4, 4, other=(1, 3)), gradient=()),
    _arith("pow", np.power, (*INTEGERS, *FLOATS, *COMPLEX), samples=binary(0.5, 3, other=(0, 3))),
    _arith("maximum", np.maximum, REALS, in_place=False),
    _arith("minimum", np.minimum, REALS, in_place=False),
    _arith("fmax", np.fmax, FLOATS, in_place=False),
    _arith("fmin", np.fmin, FLOATS, in_place=False),
    _arith("hypot", np.hypot, FLOATS),
    _arith("atan2", np.arctan2, FLOATS),
    _arith("copysign", np.copysign, FLOATS, gradient=()),
    _arith(
        "nextafter",
        np.nextafter,
        FLOATS,
        gradient=(),
        rtol={"float32": 0, "float64": 0},
        atol={"float32": 0, "float64": 0},
    ),
    _arith("logaddexp", np.logaddexp, FLOATS, samples=binary(), in_place=False),
    _arith("logaddexp2", np.logaddexp2, FLOATS, samples=binary(), in_place=False),
    _arith("gcd", np.gcd, INTEGERS, samples=binary(0, 12), gradient=()),
    _arith("lcm", np.lcm, INTEGERS, samples=binary(0, 9), gradient=()),
    _arith("heaviside", np.heaviside, FLOATS, samples=binary(), gradient=()),
    _arith("eq", np.equal, ALL, gradient=()),
    _arith("ne", np.not_equal, ALL, gradient=()),
    _arith("lt", np.less, ("bool", *REALS), gradient=()),
    _arith("le", np.less_equal, ("bool", *REALS), gradient=()),
    _arith("gt", np.greater, ("bool", *REALS), gradient=()),
    _arith("ge", np.greater_equal, ("bool", *REALS), gradient=()),
    _arith("logical_and", np.logical_and, ALL, gradient=()),
    _arith("logical_or", np.logical_or, ALL, gradient=()),
    _arith("logical_xor", np.logical_xor, ALL, gradient=()),
    _arith("bitwise_and", np.bitwise_and, ("bool", *INTEGERS), gradient=()),
    _arith("bitwise_or", np.bitwise_or, ("bool", *INTEGERS), gradient=()),
    _arith("bitwise_xor", np.bitwise_xor, ("bool", *INTEGERS), gradient=()),
    _arith("bitwise_left_shift", np.left_shift, INTEGERS, samples=binary(0, 3), gradient=()),
    _arith("bitwise_right_shift", np.right_shift, INTEGERS, samples=binary(0, 3), gradient=()),
]
