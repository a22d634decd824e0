"""Records of activations and softmax."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, INTEGERS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import unary

_GRAD = ("float64",)


def _wide(function):
    """Computed in float64, rounded to the input's dtype."""

    def call(x: np.ndarray, *args, **kwargs) -> np.ndarray:
        return np.asarray(function(widest(x), *args, **kwargs)).astype(x.dtype)

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


def _channels(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """One slope for all elements, or one for each channel."""
    shapes = (
        ((), ()),
        ((5,), (1,)),
        ((2, 3), (3,)),
        ((2, 3), ()),
        ((2, 3, 4), (3,)),
        ((0, 2), (2,)),
        ((1, 2, 1, 3), (1,)),
    )
    for x, slope in shapes:
        yield Sample((random_array(rng, x, dtype), random_array(rng, slope, dtype)))


def _prelu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    slope = slope.reshape(1, -1, *[1] * (x.ndim - 2)) if slope.size > 1 else slope.reshape(())
    return np.where(x > 0, x, slope * x)


def _converted(function):
    """With a dtype the input is converted first."""

    def call(x: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
        out = function(x.astype(np.float64), dim) if x.size else x
        return np.asarray(out).astype(dtype or x.dtype)

    return call


def _converted_rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    other = "float32" if dtype == "float64" else "float64"
    for shape in ((), (2, 3)):
        yield Sample((random_array(rng, shape, dtype), -1), {"dtype": np.dtype(other)}, "another dtype")


def _rows_of_integers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample((random_array(rng, (2, 3), dtype), 1), {"dtype": np.dtype("float32")})


def _wrong(*args, **kwargs) -> ErrorSample:
    """A wrong call, the words of its message last."""
    *given, words = args
    arrays = tuple(np.zeros(a, np.float32) if isinstance(a, tuple) else a for a in given)
    return ErrorSample(arrays, kwargs, (RuntimeError, ValueError, IndexError), words)


def _record(name, function, samples=None, namespace="ops", dtypes=FLOATS, **more):
    chosen = samples or unary(special=True)
    return OpRecord(
        name, _wide(function), chosen, dtypes, _GRAD, namespace=namespace, family="activation", **more
    )


def _gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "none":
        return x * special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


_SELU = (1.6732632423543772, 1.0507009873554805)


def _elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale))


def _softplus(x, beta=1.0, threshold=20.0):
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


def _softmaxes(name, function, namespace="", out=True, integers=INTEGERS):
    shared = {"namespace": namespace, "family": "activation", "out": out, "cancels": True}
    return [
        OpRecord(name, _converted(function), _rows, FLOATS, _GRAD, **shared),
        OpRecord(name, _converted(function), _converted_rows, FLOATS, **shared),
        OpRecord(name, _converted(function), _rows_of_integers, integers, **shared),
    ]


def _halves(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, *dim in (((4,),), ((4,), 0), ((2, 6, 3), 1), ((2, 3, 4), -1), ((0, 2), 1)):
        yield Sample((random_array(rng, shape, dtype), *dim))


_OUT = {"out": True}
_SIGNED = {"dtypes": (*INTEGERS[:4], *FLOATS), "out": True}
_ORDERED = {"dtypes": REALS, "out": True}

RECORDS = [
    _record(
        "relu", lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)), namespace="", in_place=True, **_ORDERED
    ),
    _record("relu6", lambda x: np.clip(x, 0, 6)),
    _record("elu", _elu, _calls((), (0.7,), (0.7, 1.5, 2.0)), **_OUT),
    _record(
        "celu",
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)),
        _calls((), (0.7,)),
        "",
    ),
    _record(
        "selu", lambda x: _SELU[1] * np.where(x > 0, x, _SELU[0] * np.expm1(np.minimum(x, 0))), unary(), ""
    ),
    _record(
        "gelu",
        _gelu,
        unary(),
        cancels=True,
        errors=(_wrong((2,), ("gelu", "approximate", "sigmoid"), approximate="sigmoid"),),
        **_OUT,
    ),
    _record("gelu", _gelu, unary(approximate="tanh"), cancels=True, **_OUT),
    _record("silu", lambda x: x * special.expit(x), unary(), cancels=True, **_OUT),
    _record("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), unary(), cancels=True, **_OUT),
    _record("softplus", _softplus, _calls((), (2.0,), (2.0, 3.0)), **_OUT),
    _record("softsign", lambda x: x / (1 + np.abs(x)), unary(), dtypes=FLOATS_AND_COMPLEX),
    _record("tanhshrink", lambda x: x - np.tanh(x), unary(), dtypes=FLOATS_AND_COMPLEX),
    _record("logsigmoid", lambda x: -np.logaddexp(0, -x), unary(), **_OUT),
    _record("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, slope * x), _calls((), (0.3,)), **_OUT),
    _record(
        "hardtanh",
        lambda x, low=-1.0, high=1.0: np.clip(x, low, high),
        _calls((), (-2, 1)),
        errors=(
            ErrorSample((np.uint8([0, 1, 3]),), {}, (RuntimeError,), ("hardtanh", "min_val", "uint8")),
            ErrorSample((np.float32([0, 1]), 2, 1), {}, (ValueError,), ("hardtanh", "min_val", "2")),
        ),
        **_SIGNED,
    ),
    _record("hardtanh", lambda x, low, high: np.clip(x, low, high), _calls((1, 3)), **_ORDERED),
    _record("hardsigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), unary(), **_OUT),
    _record("hardswish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), unary(), **_OUT),
    _record("hardshrink", lambda x, at=0.5: np.where(np.abs(x) > at, x, 0), _calls((), (1.0,))),
    _record(
        "softshrink", lambda x, at=0.5: np.sign(x) * np.maximum(np.abs(x) - at, 0), _calls((), (1.0,)), **_OUT
    ),
    _record("threshold", lambda x, at, value: np.where(x > at, x, value), _calls((1, 9)), **_ORDERED),
    _record("prelu", _prelu, _channels, "", errors=(_wrong((2, 3), (2,), ("prelu", "weight", "2", "3")),)),
    *_softmaxes("softmax", special.softmax),
    *_softmaxes("log_softmax", special.log_softmax),
    *_softmaxes("softmin", lambda x, dim: special.softmax(-x, dim), "ops", out=False, integers=INTEGERS[:4]),
    _record(
        "glu",
        lambda x, dim=-1: (lambda a, b: a / (1 + np.exp(-b)))(*np.split(x, 2, dim)),
        _halves,
        dtypes=FLOATS_AND_COMPLEX,
        errors=(_wrong((2, 3), 1, ("glu", "3")), _wrong((2, 2), 2, ("2",))),
    ),
]
