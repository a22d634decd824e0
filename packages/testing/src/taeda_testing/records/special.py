"""Records of special functions, held against SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import PAIRS, Sampler, binary, float_result
from taeda_testing.vocabulary import WITH_FLOAT_RESULT, differentiable, function_of_one
from taeda_testing.wrong import REFUSED, broadcast, wrong_call, zeros

_ANY = {"in_place": False, "namespace": "ops", "half": "largest"}
#: Of functions that PyTorch differentiates not at all, or once by an argument that has no derivative of its own.
_FLAT = {**_ANY, "differentiable": False}
#: Of functions that oscillate: next to their zeros the absolute error stays small, SciPy's 1.3e-15, and no other.
_WAVES = {"accuracy": {"float32": (2e-6, 1e-7), "float64": (2e-14, 2e-15)}}
#: SciPy is 3e-14 off in the far tail.
_TAIL = {"accuracy": {"float32": (2e-6, 1e-7), "float64": (4e-14, 0.0)}}


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of several operands computed in float64 and rounded to their dtype."""

    def call(*operands: Any) -> Any:
        dtype = np.result_type(*(a for a in operands if isinstance(a, np.ndarray)))
        with np.errstate(all="ignore"):
            found = function(*(np.asarray(a, np.float64) for a in operands))
        return np.asarray(found).astype(dtype)

    return float_result(call)


def _two(name: str) -> tuple[ErrorSample, ...]:
    """Operands that do not broadcast, and two numbers."""
    return (*broadcast(name), wrong_call(TypeError, f"{name} numbers", 2, 3))


def _degrees(low: float, high: float) -> Sampler:
    """Arguments, and degrees of the same dtype."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in PAIRS:
            degrees = rng.integers(0, 12, b).astype(dtype)
            yield Sample((random_array(rng, a, dtype, low, high), degrees))
        ends = np.array([-1, 0, 1, 0.5], dtype)
        yield Sample((ends[:, None].copy(), np.array([-2, 0, 1, 5, 6], dtype)))

    return samples


def _third(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """V, by U: V(n) = U(n) - U(n - 1)."""
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def _fourth(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)


def _polynomial(name: str, reference: Callable[..., Any], low: float = -1, high: float = 1) -> OpRecord:
    def shown(x: np.ndarray, n: np.ndarray) -> np.ndarray:
        return np.where(n < 0, 0.0, reference(x, np.maximum(n, 0)))

    return OpRecord(
        name, _wide(shown), _degrees(low, high), FLOATS, out=True, namespace="ops", half="largest",
        errors=_two(name),
        atol={"float32": 1e-4, "float64": 1e-10},
    )  # fmt: skip


def _shifted(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: reference(2 * x - 1, n)


def _t(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return special.eval_chebyt(n, x)


def _u(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return special.eval_chebyu(n, x)


def _mvlgamma(x: np.ndarray, p: int) -> np.ndarray:
    terms = sum(special.gammaln(x.astype(np.float64) - k / 2) for k in range(p))
    return (terms + p * (p - 1) / 4 * np.log(np.pi)).astype(x.dtype)


def _above(low: float, *rest: Any) -> Sampler:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 3), (0, 2)):
            for value in rest:
                yield Sample((random_array(rng, shape, dtype, low, low + 6), value))

    return samples


def _swapped(samples: Sampler) -> Sampler:
    return lambda dtype, rng: (Sample(s.args[::-1], s.kwargs) for s in samples(dtype, rng))


def _polygamma(x: np.ndarray, n: int) -> np.ndarray:
    return _wide(lambda x: special.polygamma(n, x))(x)


RECORDS = [
    function_of_one("special_airy_ai", lambda x: special.airy(x)[0], -9, 9, special=False, **_FLAT, **_WAVES),
    function_of_one("special_bessel_j0", special.j0, -9, 9, special=False, **_ANY, **_WAVES),
    function_of_one("special_bessel_j1", special.j1, -9, 9, special=False, **_ANY, **_WAVES),
    function_of_one("special_bessel_y0", special.y0, 0.5, 9, special=False, **_ANY, **_WAVES),
    function_of_one("special_bessel_y1", special.y1, 0.5, 9, special=False, **_ANY, **_WAVES),
    function_of_one("special_entr", special.entr, 0.2, 4, special=False, **_ANY),
    function_of_one("special_erfcx", special.erfcx, -3, 9, special=False, **_ANY),
    function_of_one("special_log_ndtr", special.log_ndtr, -9, 4, special=False, **_ANY),
    function_of_one("special_modified_bessel_k0", special.k0, 0.2, 9, special=False, **_ANY),
    function_of_one("special_modified_bessel_k1", special.k1, 0.2, 9, special=False, **_ANY),
    function_of_one("special_ndtr", special.ndtr, -6, 4, **_ANY, **_TAIL),
    function_of_one("special_ndtri", special.ndtri, 0.05, 0.95, special=False, **_ANY),
    function_of_one("special_scaled_modified_bessel_k0", special.k0e, 0.2, 9, special=False, **_ANY),
    function_of_one("special_scaled_modified_bessel_k1", special.k1e, 0.2, 9, special=False, **_ANY),
    function_of_one("special_spherical_bessel_j0", lambda x: special.spherical_jn(0, x), -9, 9, special=False, **_ANY),
    differentiable("igamma", _wide(special.gammainc), binary(0.5, 9), WITH_FLOAT_RESULT, constant=(0,), out=True,
                   half="largest", errors=broadcast("igamma")),
    differentiable("igammac", _wide(special.gammaincc), binary(0.5, 9), WITH_FLOAT_RESULT, constant=(0,), out=True,
                   half="largest", errors=broadcast("igammac")),
    differentiable("mvlgamma", float_result(_mvlgamma), _above(3, 1, 2, 5), FLOATS, out=True, in_place=True,
                   half="largest", errors=(wrong_call(REFUSED, "mvlgamma p 0", zeros(2), 0),)),
    differentiable("polygamma", lambda n, x: _polygamma(x, n), _swapped(_above(0.5, 0, 1, 2, 5)), FLOATS, out=True,
                   half="largest", errors=(wrong_call(REFUSED, "polygamma n -1", -1, zeros(2)),)),
    _polynomial("special_chebyshev_polynomial_t", _t),
    _polynomial("special_chebyshev_polynomial_u", _u),
    _polynomial("special_chebyshev_polynomial_v", _third),
    _polynomial("special_chebyshev_polynomial_w", _fourth),
    _polynomial("special_hermite_polynomial_h", lambda x, n: special.eval_hermite(n.astype(np.int64), x), -2, 2),
    _polynomial("special_hermite_polynomial_he", lambda x, n: special.eval_hermitenorm(n.astype(np.int64), x), -2, 2),
    _polynomial("special_laguerre_polynomial_l", lambda x, n: special.eval_laguerre(n.astype(np.int64), x), -3, 5),
    _polynomial("special_legendre_polynomial_p", lambda x, n: special.eval_legendre(n.astype(np.int64), x)),
    _polynomial("special_shifted_chebyshev_polynomial_t", _shifted(_t), 0, 1),
    _polynomial("special_shifted_chebyshev_polynomial_u", _shifted(_u), 0, 1),
    _polynomial("special_shifted_chebyshev_polynomial_v", _shifted(_third), 0, 1),
    _polynomial("special_shifted_chebyshev_polynomial_w", _shifted(_fourth), 0, 1),
    differentiable("special_xlog1py", _wide(special.xlog1py), binary(-0.5, 3), WITH_FLOAT_RESULT, out=True,
                   namespace="ops", half="largest", errors=_two("special_xlog1py")),
    differentiable("special_zeta", _wide(special.zeta), binary(1.5, 6), WITH_FLOAT_RESULT, constant=(0,), out=True,
                   namespace="ops", half="largest", errors=_two("special_zeta")),
]  # fmt: skip
