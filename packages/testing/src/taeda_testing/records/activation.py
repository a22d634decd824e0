"""Records of activations and softmax."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, OpRecord, Sample
from taeda_testing.sampling import unary

_GRAD = ("float64",)


def _wide(function):
    """Computed in float64, rounded to the input's dtype."""

    def call(x: np.ndarray, *args, **kwargs) -> np.ndarray:
        return np.asarray(function(x.astype(np.float64), *args, **kwargs)).astype(x.dtype)

    return call


def _calls(*calls):
    """Every shape, with each tuple of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for rest in calls:
            for sample in unary()(dtype, rng):
                yield Sample((*sample.args, *rest))

    return samples


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (3, 4, 2), (0, 3), (2, 200)):
        for dim in range(-1, len(shape)):
            yield Sample((random_array(rng, shape, dtype, -20, 20), dim))


def _record(name, function, samples=None, namespace="ops", gradient=_GRAD):
    chosen = samples or unary(special=True)
    return OpRecord(name, _wide(function), chosen, FLOATS, gradient, namespace=namespace, family="activation")


def _gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "none":
        return x * special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


_SELU = (1.6732632423543772, 1.0507009873554805)

RECORDS = [
    _record("relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), namespace=""),
    _record("relu6", lambda x: np.clip(x, 0, 6)),
    _record("elu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), _calls((), (0.7,))),
    _record(
        "celu", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)), _calls((), (0.7,)), ""
    ),
    _record("selu", lambda x: _SELU[1] * np.where(x > 0, x, _SELU[0] * np.expm1(x)), unary(), ""),
    _record("gelu", _gelu, unary()),
    OpRecord(
        "gelu", _wide(_gelu), unary(approximate="tanh"), FLOATS, _GRAD, namespace="ops", family="activation"
    ),
    _record("silu", lambda x: x * special.expit(x), unary()),
    _record("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), unary()),
    _record("softplus", lambda x, beta=1.0: np.logaddexp(0, beta * x) / beta, _calls((), (2.0,))),
    _record("softsign", lambda x: x / (1 + np.abs(x)), unary()),
    _record("tanhshrink", lambda x: x - np.tanh(x), unary()),
    _record("logsigmoid", lambda x: -np.logaddexp(0, -x), unary()),
    _record("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, slope * x), _calls((), (0.3,))),
    _record("hardtanh", lambda x, low=-1.0, high=1.0: np.clip(x, low, high), _calls((), (-2.0, 0.5))),
    _record("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), unary()),
    _record("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), unary()),
    _record("hardshrink", lambda x, at=0.5: np.where(np.abs(x) > at, x, 0), _calls((), (1.0,))),
    _record("softshrink", lambda x, at=0.5: np.sign(x) * np.maximum(np.abs(x) - at, 0), _calls((), (1.0,))),
    _record("threshold", lambda x, at, value: np.where(x > at, x, value), _calls((0.5, 9.0))),
    _record("softmax", lambda x, dim: special.softmax(x, dim) if x.size else x, _rows, ""),
    _record("log_softmax", lambda x, dim: special.log_softmax(x, dim) if x.size else x, _rows, ""),
    _record("softmin", lambda x, dim: special.softmax(-x, dim) if x.size else x, _rows),
    _record(
        "glu",
        lambda x, dim=-1: (lambda a, b: a * special.expit(b))(*np.split(x, 2, dim)),
        lambda dtype, rng: (Sample((random_array(rng, s, dtype), d)) for s, d in (((4,), 0), ((2, 6, 3), 1))),
    ),
]
