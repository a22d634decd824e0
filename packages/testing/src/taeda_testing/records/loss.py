"""Records of losses; the reduction is a number: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample

_GRAD = ("float64",)
_PAIR_SHAPES = ((), (5,), (2, 3), (4, 1, 2))


def reduced(values: np.ndarray, reduction: int) -> np.ndarray:
    """All values, their mean or their sum."""
    if reduction == 0:
        return np.asarray(values)
    total = np.sum(values)
    return np.asarray(total / np.float64(np.size(values)) if reduction == 1 else total)


def _loss(function):
    """A loss of every element, computed in float64 and then reduced."""

    def call(x: np.ndarray, y: np.ndarray, reduction: int = 1, **kwargs) -> np.ndarray:
        out = reduced(function(x.astype(np.float64), y.astype(np.float64), **kwargs), reduction)
        return np.asarray(out).astype(x.dtype)

    return call


def _pairs(low: float = -3, high: float = 3, target: tuple[float, float] | None = None, **kwargs):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in _PAIR_SHAPES:
            for reduction in (0, 1, 2):
                x = random_array(rng, shape, dtype, low, high)
                yield Sample(
                    (x, random_array(rng, shape, dtype, *(target or (low, high))), reduction), dict(kwargs)
                )

    return samples


def _broadcast(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Plain calls, also of shapes that broadcast."""
    yield from _pairs()(dtype, rng)
    for a, b in (((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 2), (2,))):
        x, y = random_array(rng, a, dtype), random_array(rng, b, dtype)
        for reduction in (0, 1, 2):
            yield Sample((x, y, reduction), note="" if x.size or reduction != 1 else "mean of nothing")
    yield Sample((random_array(rng, (2, 2), dtype), random_array(rng, (2, 2), dtype)))


def _huber(x, y, delta=1.0):
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def _smooth(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def _binary(dtype: str, rng: np.random.Generator, low: float, high: float) -> Iterator[Sample]:
    for sample in _pairs(low, high, target=(0, 1))(dtype, rng):
        x, y, reduction = sample.args
        for weight in (None, random_array(rng, x.shape, dtype, 0.5, 2)):
            yield Sample((x, y), {"weight": weight, "reduction": reduction})


def _logits(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield from _binary(dtype, rng, -3, 3)
    for sample in _pairs(target=(0, 1))(dtype, rng):
        x, y, reduction = sample.args
        given = {"reduction": reduction, "pos_weight": random_array(rng, x.shape[-1:], dtype, 0.5, 2)}
        yield Sample((x, y), given)
        yield Sample((x, y), {"weight": random_array(rng, x.shape, dtype, 0.5, 2), **given})


def _same(low: float, high: float, *ends: float):
    """Pairs with the reduction, and inputs at the ends of their range, where no derivative is."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        yield from _pairs(low, high, target=(0, 1))(dtype, rng)
        x, y = np.array([*ends, *ends], dtype), np.array([0.0] * len(ends) + [1.0] * len(ends), dtype)
        yield Sample((x, y, 0), note="ends of the range")
        for reduction in (0, 1, 2):
            yield Sample((x[:0], y[:0], reduction))

    return samples


def _divergences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for log_target, low, high in ((False, 0.1, 2), (True, -2, 1)):
        for sample in _pairs(-3, 0, target=(low, high))(dtype, rng):
            yield Sample(sample.args, {"log_target": log_target} if log_target else {})
    x = random_array(rng, (3, 2), dtype)
    yield Sample((x, np.array([0, 0.5], dtype)), note="a target of zero")


def _divergence(x, y, reduction=1, log_target=False):
    x, y = x.astype(np.float64), y.astype(np.float64)
    values = np.exp(y) * (y - x) if log_target else special.xlogy(y, y) - y * x
    return reduced(values, reduction)


def _bce(x, y, weight=None, reduction=1):
    values = -(y * np.log(x) + (1 - y) * np.log1p(-x)) * (1 if weight is None else weight)
    return reduced(values, reduction).astype(x.dtype)


def _clamped_bce(x, y):
    with np.errstate(all="ignore"):
        return -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log1p(-x), -100))


def _plain_logits(x, y):
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def _bce_logits(x, y, weight=None, pos_weight=None, reduction=1):
    x64, p = x.astype(np.float64), 1 if pos_weight is None else pos_weight
    values = p * y * np.logaddexp(0, -x64) + (1 - y) * np.logaddexp(0, x64)
    return reduced(values * (1 if weight is None else weight), reduction).astype(x.dtype)


def wrong(*calls) -> tuple[ErrorSample, ...]:
    """Calls with zeros of given shapes, and the words of their messages."""

    def array(value):
        return np.zeros(value, np.float32) if isinstance(value, tuple) else value

    return tuple(
        ErrorSample(tuple(array(a) for a in args), {}, (RuntimeError, ValueError, IndexError), words)
        for args, words in calls
    )


def _pair_errors(name: str) -> tuple[ErrorSample, ...]:
    return wrong((((2, 3), (4,)), (name, "3", "4")), (((2,), (2,), 3), (name, "reduction", "3")))


_BINARY_ERRORS = (((2, 3), (3,)), ("binary_cross_entropy", "target", "(3,)", "(2, 3)"))


def record(name, function, samples, constant=(), namespace="ops", **more):
    return OpRecord(
        name,
        function,
        samples,
        FLOATS,
        _GRAD,
        constant,
        namespace=namespace,
        family="loss",
        cancels=True,
        **more,
    )


def _pair_record(name, function, *, out=True, **kwargs):
    """With its default, and with another threshold when it has one."""
    plain = record(name, _loss(function), _broadcast, out=out, errors=_pair_errors(name))
    return [plain, record(name, _loss(function), _pairs(**kwargs), out=out)] if kwargs else [plain]


RECORDS = [
    *_pair_record("mse_loss", lambda x, y: (x - y) ** 2),
    *_pair_record("l1_loss", lambda x, y: np.abs(x - y), out=False),
    *_pair_record("huber_loss", _huber, delta=0.7),
    *_pair_record("smooth_l1_loss", _smooth, beta=0.7),
    record(
        "binary_cross_entropy",
        _bce,
        lambda dtype, rng: _binary(dtype, rng, 0.1, 0.9),
        errors=wrong(_BINARY_ERRORS),
    ),
    record("bce_loss", _loss(_clamped_bce), _same(0.1, 0.9, 0.0, 1.0), errors=wrong(_BINARY_ERRORS)),
    record(
        "binary_cross_entropy_with_logits", _bce_logits, _logits, namespace="", errors=wrong(_BINARY_ERRORS)
    ),
    record(
        "bce_with_logits_loss",
        _loss(_plain_logits),
        _same(-3, 3, -800.0, 800.0),
        errors=wrong(_BINARY_ERRORS),
    ),
    record(
        "kl_div",
        lambda x, *a, **k: _divergence(x, *a, **k).astype(x.dtype),
        _divergences,
        namespace="",
        errors=wrong((((2, 3), (4,)), ("3", "4")), (((2,), (2,), 3), ("kl_div", "reduction", "3"))),
    ),
]
