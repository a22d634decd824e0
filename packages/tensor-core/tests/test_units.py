"""Errors of functions in units in the last place, against mpmath: 2 in float64, 4 in float32, next to zeros too."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp

import taeda_tensor_core as t

SEED = 20261125
LIMITS = {"float64": 2.0, "float32": 4.0}
COUNT = 24


def _bessel(kind: str, order: int, scaled: bool = False) -> Callable[[Any], Any]:
    sign = {"besseli": -1, "besselk": 1}.get(kind, 0) if scaled else 0
    return lambda x: getattr(mp, kind)(order, x) * mp.exp(sign * abs(x))


def _zeta(s: Any, q: Any) -> Any:
    with mp.workprec(320):  # where mpmath loses digits
        return mp.zeta(s, q)


# Function, exact function, ranges of its argument.
ONE = {
    "acos": (t.acos, mp.acos, [(-1, 1)]),
    "asin": (t.asin, mp.asin, [(-1, 1)]),
    "atan": (t.atan, mp.atan, [(-3, 3), (-1e6, 1e6)]),
    "cos": (t.cos, mp.cos, [(-7, 7), (-5e3, 5e3)]),
    "cosh": (t.cosh, mp.cosh, [(-80, 80)]),
    "erfc": (t.erfc, mp.erfc, [(-5, 9), (-1, 1)]),
    "erfinv": (t.erfinv, mp.erfinv, [(-1, 1)]),
    "exp": (t.exp, mp.exp, [(-80, 80)]),
    "expm1": (t.expm1, mp.expm1, [(-1, 1), (-20, 80)]),
    "lgamma": (t.lgamma, lambda x: mp.log(abs(mp.gamma(x))), [(0.1, 30), (30, 1e4)]),
    "log10": (t.log10, lambda x: mp.log(x, 10), [(0.5, 2), (1e-30, 1e30)]),
    "log2": (t.log2, lambda x: mp.log(x, 2), [(0.5, 2), (1e-30, 1e30)]),
    "sigmoid": (t.sigmoid, lambda x: 1 / (1 + mp.exp(-x)), [(-80, 80), (-2, 2)]),
    "sin": (t.sin, mp.sin, [(-7, 7), (-5e3, 5e3)]),
    "sinc": (t.sinc, lambda x: mp.sin(mp.pi * x) / (mp.pi * x), [(-30, 30)]),
    "sinh": (t.sinh, mp.sinh, [(-1, 1), (-80, 80)]),
    "tan": (t.tan, mp.tan, [(-3, 3), (-5e3, 5e3)]),
    "tanh": (t.tanh, mp.tanh, [(-1, 1), (-20, 20)]),
    "airy_ai": (t.special.airy_ai, mp.airyai, [(-10, 10), (-200, -10), (0, 60)]),
    "bessel_j0": (t.special.bessel_j0, _bessel("besselj", 0), [(0, 50), (50, 1e4)]),
    "bessel_j1": (t.special.bessel_j1, _bessel("besselj", 1), [(0, 50), (50, 1e4)]),
    "bessel_y0": (t.special.bessel_y0, _bessel("bessely", 0), [(0.01, 3), (3, 50), (50, 1e4)]),
    "bessel_y1": (t.special.bessel_y1, _bessel("bessely", 1), [(0.01, 3), (3, 50), (50, 1e4)]),
    "digamma": (t.digamma, mp.digamma, [(0.01, 12), (1.4, 1.5), (10, 1e4)]),
    "erfcx": (t.special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), [(-5, 50), (0, 1)]),
    "i0": (t.special.i0, _bessel("besseli", 0), [(-60, 60), (-9, 9)]),
    "i0e": (t.special.i0e, _bessel("besseli", 0, True), [(-60, 60), (-9, 9)]),
    "i1": (t.special.i1, _bessel("besseli", 1), [(-60, 60), (-9, 9)]),
    "i1e": (t.special.i1e, _bessel("besseli", 1, True), [(-60, 60), (-9, 9)]),
    "k0": (t.special.modified_bessel_k0, _bessel("besselk", 0), [(0.01, 3), (3, 50)]),
    "k0e": (t.special.scaled_modified_bessel_k0, _bessel("besselk", 0, True), [(0.01, 3), (3, 50)]),
    "k1": (t.special.modified_bessel_k1, _bessel("besselk", 1), [(0.01, 3), (3, 50)]),
    "k1e": (t.special.scaled_modified_bessel_k1, _bessel("besselk", 1, True), [(0.01, 3), (3, 50)]),
    "log_ndtr": (t.special.log_ndtr, lambda x: mp.log(mp.ncdf(x)), [(-30, 9), (-1, 1)]),
    "ndtr": (t.special.ndtr, mp.ncdf, [(-12, 9), (-1, 1)]),
    "ndtri": (t.special.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [(1e-3, 0.999), (1e-6, 0.1)]),
    "polygamma 1": (lambda x: t.polygamma(1, x), lambda x: mp.psi(1, x), [(0.1, 30)]),
    "polygamma 4": (lambda x: t.polygamma(4, x), lambda x: mp.psi(4, x), [(0.1, 30)]),
    "spherical_bessel_j0": (t.special.spherical_bessel_j0, lambda x: mp.sin(x) / x, [(0.1, 50)]),
}
TWO = {
    "logaddexp": (t.logaddexp, lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
                  [((-30, 30), (-30, 30)), ((-2, 0), (-2, 0))]),
    "logaddexp2": (t.logaddexp2, lambda a, b: mp.log(mpmath.power(2, a) + mpmath.power(2, b), 2),
                   [((-30, 30), (-30, 30)), ((-2, 0), (-2, 0))]),
    "zeta": (t.special.zeta, _zeta, [((1.1, 20), (0.1, 20)), ((1.01, 40), (5, 100))]),
    "gammainc": (t.special.gammainc, lambda a, x: mp.gammainc(a, 0, x, True),
                 [((0.1, 20), (0.1, 20)), ((15, 60), (15, 60))]),
    "gammaincc": (t.special.gammaincc, lambda a, x: mp.gammainc(a, x, mp.inf, True),
                  [((0.01, 20), (0.01, 20)), ((15, 60), (15, 60))]),
}  # fmt: skip


def units(found: np.ndarray, exact: list[Any], dtype: str) -> float:
    """The largest error in distances of the dtype's numbers, of results that are normal numbers."""
    information, worst = np.finfo(dtype), 0.0
    for y, e in zip(found, exact, strict=True):
        if information.tiny <= abs(e) <= information.max:
            unit = float(np.spacing(np.abs(np.dtype(dtype).type(float(e)))))
            worst = max(worst, float(abs(mp.mpf(float(y)) - e) / unit))
    return worst


def check(function: Any, exact: Callable[..., Any], dtype: str, arguments: list[np.ndarray]) -> None:
    with mp.workprec(160):
        expected = [exact(*map(mp.mpf, map(float, each))) for each in zip(*arguments, strict=True)]
        found = function(*map(t.from_numpy, arguments)).numpy()
        assert units(found, expected, dtype) <= LIMITS[dtype], f"seed {SEED}"


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(name, dtype):
    rng = np.random.default_rng(SEED)
    function, exact, ranges = ONE[name]
    check(function, exact, dtype, [np.concatenate([rng.uniform(*r, COUNT) for r in ranges]).astype(dtype)])


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name, dtype):
    rng = np.random.default_rng(SEED)
    function, exact, ranges = TWO[name]
    check(function, exact, dtype,
          [np.concatenate([rng.uniform(*r[k], COUNT) for r in ranges]).astype(dtype) for k in range(2)])  # fmt: skip


ZEROS = {
    "airy_ai": [mp.airyaizero(k) for k in (1, 5, 12, 40)],
    "bessel_j0": [mp.besseljzero(0, k) for k in (1, 2, 10, 20, 200)],
    "bessel_j1": [mp.besseljzero(1, k) for k in (1, 2, 10, 20, 200)],
    "bessel_y0": [mp.besselyzero(0, k) for k in (1, 2, 10, 20, 200)],
    "bessel_y1": [mp.besselyzero(1, k) for k in (1, 2, 10, 20, 200)],
    "digamma": [mp.findroot(mp.digamma, 1.46)],
}


@pytest.mark.parametrize("name", ZEROS)
def test_next_to_zeros(name):
    """The neighbours of a zero keep all digits, though the function is a millionth of a millionth there."""
    function, exact, _ = ONE[name]
    x = np.array([float(z) for z in ZEROS[name]])
    check(
        function,
        exact,
        "float64",
        [np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, 1e9), x * (1 + 1e-9)])],
    )


def test_sums_of_exponentials_next_to_one():
    """log(exp(a) + exp(b)) is small where the sum is nearly 1."""
    rng = np.random.default_rng(SEED)
    a = -rng.uniform(0.05, 2, 100)
    near = 1 + 10 ** -rng.uniform(2, 11, 100)
    check(*TWO["logaddexp"][:2], "float64", [a, np.log(-np.expm1(a)) * near])
    b = np.log2(-np.expm1(a * np.log(2))) * near
    check(*TWO["logaddexp2"][:2], "float64", [a, b])


def test_float32_beyond_the_whole_turns_that_its_own_arithmetic_takes():
    x = np.array([1599.9, 1600.1, -1601.5, 99_999.5, 1e6, 1.5e6, 3e9, 1e30], np.float32)
    for name in ("sin", "cos"):
        check(*ONE[name][:2], "float32", [x])


def test_small_results_of_sigmoid_and_large_ones_of_expm1():
    x = t.tensor([-709.0, -720.0, -740.0], dtype=t.float64)
    np.testing.assert_allclose(x.sigmoid().numpy(), np.exp(x.numpy()), rtol=1e-12, atol=5e-324)
    y = np.array([709.1, 709.5, 709.78])
    np.testing.assert_allclose(t.from_numpy(y).expm1().numpy(), np.expm1(y), rtol=1e-15)
    assert t.from_numpy(y + 1).expm1().isinf().all()
