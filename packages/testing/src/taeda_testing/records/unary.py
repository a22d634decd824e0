"""Records of the mathematical functions of one argument."""

from __future__ import annotations

import numpy as np
from scipy import special

from taeda_testing.record import ALL, COMPLEX, FLOATS, FLOATS_AND_COMPLEX, REALS, OpRecord
from taeda_testing.sampling import float_result, unary

_ANY_FLOAT = ("bool", "int32", "int64", "uint8", *FLOATS)
_ANY = (*_ANY_FLOAT, *COMPLEX)
# Functions of floats are computed in float64 as reference, then rounded to the input's precision.


def _wide(function):
    def call(x: np.ndarray) -> np.ndarray:
        if x.dtype == np.float32:
            return np.asarray(function(x.astype(np.float64))).astype(np.float32)
        if x.dtype == np.complex64:
            return np.asarray(function(x.astype(np.complex128))).astype(np.complex64)
        return np.asarray(function(x))

    return float_result(call)


def _record(name, function, low=-4.0, high=4.0, dtypes=_ANY_FLOAT, special_values=True, gradient=True):
    return OpRecord(
        name,
        _wide(function),
        unary(low, high, special=special_values),
        dtypes,
        gradient=("float64",) if gradient else (),
        in_place=True,
        out=True,
        family="unary",
    )


RECORDS = [
    _record("exp", np.exp, dtypes=_ANY),
    _record("exp2", np.exp2, dtypes=_ANY),
    _record("expm1", np.expm1, dtypes=_ANY),
    _record("log", np.log, 0.1, 9, dtypes=_ANY),
    _record("log2", np.log2, 0.1, 9, dtypes=_ANY),
    _record("log10", np.log10, 0.1, 9, dtypes=_ANY),
    _record("log1p", np.log1p, -0.9, 9, dtypes=_ANY),
    _record("sin", np.sin, dtypes=_ANY),
    _record("cos", np.cos, dtypes=_ANY),
    _record("tan", np.tan, -1.2, 1.2, dtypes=_ANY),
    _record("asin", np.arcsin, -0.9, 0.9, dtypes=_ANY),
    _record("acos", np.arccos, -0.9, 0.9, dtypes=_ANY),
    _record("atan", np.arctan, dtypes=_ANY),
    _record("sinh", np.sinh, dtypes=_ANY),
    _record("cosh", np.cosh, dtypes=_ANY),
    _record("tanh", np.tanh, dtypes=_ANY),
    _record("asinh", np.arcsinh, dtypes=_ANY),
    _record("acosh", np.arccosh, 1.1, 9, dtypes=_ANY),
    _record("atanh", np.arctanh, -0.9, 0.9, dtypes=_ANY),
    _record("sigmoid", lambda x: 1 / (1 + np.exp(-x)), dtypes=_ANY),
    _record("erf", special.erf),
    _record("erfc", special.erfc),
    _record("erfinv", special.erfinv, -0.95, 0.95, special_values=False),
    _record("lgamma", special.gammaln, 0.2, 9, special_values=False),
    _record("digamma", special.digamma, 0.5, 9, special_values=False, gradient=False),
    _record("sqrt", np.sqrt, 0.1, 9, dtypes=_ANY),
    _record("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9, dtypes=_ANY),
    _record("reciprocal", lambda x: 1 / x, 0.5, 4, dtypes=_ANY),
    OpRecord(
        "square", np.square, unary(special=True), (*REALS, *COMPLEX), gradient=("float64",), family="unary"
    ),
    OpRecord("abs", np.abs, unary(special=True), (*REALS, *COMPLEX), ("float64",), family="unary"),
    OpRecord(
        "neg",
        np.negative,
        unary(special=True),
        (*REALS, *COMPLEX),
        gradient=("float64",),
        in_place=True,
        out=True,
        family="unary",
    ),
    OpRecord("sign", np.sign, unary(), REALS, in_place=True, out=True, family="unary"),
    OpRecord("floor", np.floor, unary(special=True), FLOATS, in_place=True, out=True, family="unary"),
    OpRecord("ceil", np.ceil, unary(special=True), FLOATS, in_place=True, out=True, family="unary"),
    OpRecord("trunc", np.trunc, unary(special=True), FLOATS, in_place=True, out=True, family="unary"),
    OpRecord("round", np.round, unary(special=True), FLOATS, in_place=True, out=True, family="unary"),
    OpRecord("isnan", np.isnan, unary(special=True), FLOATS_AND_COMPLEX, family="unary"),
    OpRecord("isreal", np.isreal, unary(), ALL, family="compare"),
    OpRecord("isinf", np.isinf, unary(special=True), FLOATS_AND_COMPLEX, family="unary"),
    OpRecord("isfinite", np.isfinite, unary(special=True), FLOATS_AND_COMPLEX, family="unary"),
    OpRecord("signbit", np.signbit, unary(special=True), FLOATS, out=True, family="unary"),
    OpRecord("logical_not", np.logical_not, unary(), ALL, out=True, family="unary"),
    OpRecord(
        "bitwise_not", np.invert, unary(), ("bool", *REALS[:8]), in_place=True, out=True, family="unary"
    ),
    OpRecord("conj", np.conj, unary(), (*FLOATS, *COMPLEX), ("float64",), family="unary"),
    OpRecord("deg2rad", np.deg2rad, unary(), FLOATS, gradient=("float64",), family="unary"),
    OpRecord("sinc", np.sinc, unary(), FLOATS_AND_COMPLEX, gradient=("float64",), family="unary"),
]
