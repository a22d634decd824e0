"""Records of the gradients of activations, given the incoming gradient and the input or output of the forward call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import PAIRS

_ROOT = np.sqrt(2 / np.pi)


def _pairs(*calls: tuple[Any, ...], options: tuple[dict[str, Any], ...] = ({},)) -> Any:
    """Gradients and inputs that broadcast, with each tuple of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for rest in calls or ((),):
            for given in options:
                for a, b in PAIRS:
                    x = random_array(rng, b, dtype)
                    yield Sample((random_array(rng, a, dtype), x, *rest), dict(given))

    return samples


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((), (5,), (2, 3), (3, 4, 2), (0, 3), (2, 40)):
        for dim in range(-1, max(len(shape), 1)):
            output = random_array(rng, shape, dtype, -1, 1)
            yield Sample((random_array(rng, shape, dtype), output, dim))


def _masks(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((), (5,), (0,), (2, 3)):
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape, "bool"), 1.25))


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(grad: np.ndarray, x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        found = function(widest(grad), widest(x), *args, **kwargs)
        return np.asarray(found).astype(grad.dtype)

    return call


def _elu(g, x, alpha, scale, input_scale):
    return g * scale * np.where(x > 0, 1, alpha * input_scale * np.exp(np.minimum(x, 0) * input_scale))


def _gelu(g, x, approximate="none"):
    if approximate == "none":
        return g * (special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
    t = np.tanh(_ROOT * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _ROOT * (1 + 3 * 0.044715 * x * x))


def _mish(g, x):
    t = np.tanh(np.logaddexp(0, x))
    return g * (t + x * (1 - t * t) * special.expit(x))


def _softplus(g, x, beta, threshold):
    return g * np.where(beta * x > threshold, 1, special.expit(beta * x))


def _softmax(g, y, dim):
    return y * (g - (g * y).sum(dim, keepdims=True)) if y.ndim else y * (g - g * y)


def _log_softmax(g, y, dim):
    return g - np.exp(y) * (g.sum(dim, keepdims=True) if y.ndim else g)


def _record(
    name: str, function: Callable[..., Any], *calls: Any, samples: Any = None, dtypes: Any = FLOATS
) -> OpRecord:
    rest = calls[0] if calls else ()
    wrong = (np.zeros((2, 3), np.float32), np.zeros(4, np.float32), *rest)
    return OpRecord(
        f"{name}_backward",
        _wide(function),
        samples or _pairs(*calls),
        dtypes,
        ("float64",),
        namespace="ops",
        out=True,
        cancels=name in ("gelu", "mish", "silu", "softmax", "log_softmax"),
        errors=()
        if samples
        else (ErrorSample(wrong, {}, (RuntimeError, ValueError), (f"{name}_backward", "3", "4")),),
        family="activation",
    )


RECORDS = [
    _record("elu", _elu, (1, 1, 1), (0.7, 1.5, 2.0)),
    _record("gelu", _gelu),
    _record("gelu", _gelu, samples=_pairs(options=({"approximate": "tanh"},))),
    _record("hardsigmoid", lambda g, x: np.where(np.abs(x) < 3, g / 6, 0)),
    _record("hardswish", lambda g, x: g * np.where(x < -3, 0, np.where(x <= 3, x / 3 + 0.5, 1))),
    _record("hardtanh", lambda g, x, low, high: np.where((x > low) & (x < high), g, 0), (-1, 1), (-2.5, 0.5)),
    _record("leaky_relu", lambda g, x, slope: np.where(x > 0, g, g * slope), (0.01,), (-2,)),
    _record("log_softmax", _log_softmax, samples=_rows),
    _record("logsigmoid", lambda g, x: g * special.expit(-x)),
    _record("mish", _mish),
    _record("shrink", lambda g, x, at: np.where(np.abs(x) > at, g, 0), (0.5,), (2,)),
    _record("sigmoid", lambda g, y: g * np.conj(y * (1 - y)), dtypes=FLOATS_AND_COMPLEX),
    _record("silu", lambda g, x: g * special.expit(x) * (1 + x * special.expit(-x))),
    _record("softmax", _softmax, samples=_rows),
    _record("softplus", _softplus, (1, 20), (2.0, 3.0)),
    _record("tanh", lambda g, y: g * np.conj(1 - y * y), dtypes=FLOATS_AND_COMPLEX),
    _record("threshold", lambda g, x, at: np.where(x <= at, 0, g), (0,), (1.5,)),
    OpRecord(
        "native_dropout_backward",
        lambda g, mask, scale: (g * mask * scale).astype(g.dtype),
        _masks,
        FLOATS_AND_COMPLEX,
        ("float64",),
        namespace="ops",
        family="activation",
    ),
]
