"""Records of the mathematical functions of one argument, and of real and imaginary parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import (
    COMPLEX,
    FLOATS,
    FLOATS_AND_COMPLEX,
    Sample,
)
from taeda_testing.sampling import binary, unary
from taeda_testing.vocabulary import (
    NEARLY_EXACT,
    WITH_INEXACT_RESULT,
    differentiable,
    function_of_one,
    function_of_two,
    kinks,
    rounded,
    with_errors,
)
from taeda_testing.wrong import REFUSED, wrong_call, zeros


def _complex_of(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    return (real + 1j * imag.astype(np.result_type(imag, 1j))).astype(np.result_type(real, 1j))


def _sinc(x: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(x):
        return np.sinc(x)
    # Whole numbers of half turns are exact, where NumPy rounds them.
    whole = np.rint(x)
    sines = np.sin(np.pi * (x - whole)) * (1 - 2 * np.mod(whole, 2))
    return np.where(x == 0, 1, sines / np.where(x == 0, 1, np.pi * x)).astype(x.dtype)


def _pairs(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((2,), (3, 2), (0, 2), (2, 3, 2)):
        yield Sample((random_array(rng, shape, dtype),))


RECORDS = [
    function_of_one("exp", np.exp, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("exp2", np.exp2, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("expm1", np.expm1, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("log", np.log, 0.1, 9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("log2", np.log2, 0.1, 9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("log10", np.log10, 0.1, 9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("log1p", np.log1p, -0.9, 9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("sin", np.sin, dtypes=WITH_INEXACT_RESULT),
    function_of_one("cos", np.cos, dtypes=WITH_INEXACT_RESULT),
    function_of_one("tan", np.tan, -1.2, 1.2, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("asin", np.arcsin, -0.9, 0.9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("acos", np.arccos, -0.9, 0.9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("atan", np.arctan, dtypes=WITH_INEXACT_RESULT),
    function_of_one("sinh", np.sinh, dtypes=WITH_INEXACT_RESULT),
    function_of_one("cosh", np.cosh, dtypes=WITH_INEXACT_RESULT),
    function_of_one("tanh", np.tanh, dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("asinh", np.arcsinh, dtypes=WITH_INEXACT_RESULT),
    function_of_one("acosh", np.arccosh, 1.1, 9, dtypes=WITH_INEXACT_RESULT, half="largest",
                    kinks=kinks({-2.0: 3**-0.5, 2.0: 3**-0.5})),
    function_of_one("atanh", np.arctanh, -0.9, 0.9, dtypes=WITH_INEXACT_RESULT),
    function_of_one("sigmoid", lambda x: 1 / (1 + np.exp(-x)), dtypes=WITH_INEXACT_RESULT, half="largest"),
    function_of_one("erf", special.erf),
    function_of_one("erfc", special.erfc),
    function_of_one("erfinv", special.erfinv, -0.95, 0.95, special=False, half="largest"),
    function_of_one("lgamma", special.gammaln, 0.2, 9, special=False,
                    accuracy={"float32": (2e-6, 1e-7), "float64": (4e-14, 1e-14)}),
    function_of_one("digamma", special.digamma, 0.5, 9, special=False, accuracy={}),
    differentiable("floor", np.floor, unary(special=True), FLOATS, in_place=True, out=True),
    differentiable("ceil", np.ceil, unary(special=True), FLOATS, in_place=True, out=True),
    differentiable("trunc", np.trunc, unary(special=True), FLOATS, in_place=True, out=True),
    differentiable("round", np.round, unary(special=True), FLOATS, in_place=True, out=True),
    differentiable("conj", np.conj, unary(), (*FLOATS, *COMPLEX)),
    differentiable("conj_physical", np.conj, unary(), (*FLOATS, *COMPLEX), in_place=True, out=True),
    differentiable("deg2rad", np.deg2rad, unary(), FLOATS, accuracy=NEARLY_EXACT),
    differentiable("sinc", _sinc, unary(), FLOATS_AND_COMPLEX, accuracy=NEARLY_EXACT),
    function_of_two("atan2", np.arctan2, FLOATS),
    with_errors("polar", lambda r, phi: _complex_of(r * np.cos(phi), r * np.sin(phi)), binary(),
            wrong_call(REFUSED, "2 3", zeros(2), zeros(3)), dtypes=FLOATS,
            behaviours=("gradients through complex numbers",), half=""),
    with_errors("view_as_complex", lambda x: _complex_of(x[..., 0], x[..., 1]), _pairs,
            wrong_call(REFUSED, "view_as_complex 3", zeros(2, 3)),
            wrong_call(REFUSED, "view_as_complex", zeros()),
            wrong_call((TypeError, RuntimeError), "view_as_complex int64", zeros(2, dtype=np.int64)),
            dtypes=FLOATS, row_major=True, behaviours=("gradients through complex numbers",), half=""),
    with_errors("view_as_real", lambda x: np.stack([x.real, x.imag], -1), unary(),
            wrong_call((TypeError, RuntimeError), "view_as_real float32", zeros(2)), dtypes=COMPLEX,
            behaviours=("gradients through complex numbers",), half=""),
    differentiable("frac", lambda x: x - np.trunc(x), unary(), FLOATS),
    differentiable("rad2deg", np.rad2deg, unary(), FLOATS, rtol={"float32": 1e-6}, atol={"float32": 1e-4}),
    differentiable("nan_to_num", lambda x: np.nan_to_num(x, nan=0.0), unary(special=True), FLOATS_AND_COMPLEX),
    differentiable("logit", rounded(special.logit), unary(0.1, 0.9), FLOATS,
                   kinks=kinks({-1.0: np.nan, 2.0: np.nan, 0.5: 4})),
    differentiable("i0", rounded(special.i0), unary(), FLOATS, accuracy=NEARLY_EXACT),
    differentiable("i1", rounded(special.i1), unary(), FLOATS, half="largest"),
    differentiable("i0e", rounded(special.i0e), unary(), FLOATS, half="largest"),
    differentiable("i1e", rounded(special.i1e), unary(), FLOATS, half="largest"),
    differentiable("angle", np.angle, unary(), (*FLOATS, *COMPLEX)),
    differentiable("real", np.real, unary(), (*FLOATS, *COMPLEX)),
    differentiable("imag", np.imag, unary(), COMPLEX),
]  # fmt: skip
