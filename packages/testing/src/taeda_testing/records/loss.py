"""Records of losses; the reduction is a number: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, OpRecord, Sample

_GRAD = ("float64",)
_PAIR_SHAPES = ((), (5,), (2, 3), (4, 1, 2))


def reduced(values: np.ndarray, reduction: int) -> np.ndarray:
    """All values, their mean or their sum."""
    return np.asarray((values, np.mean(values), np.sum(values))[reduction])


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


def _record(name, function, samples, constant=()):
    return OpRecord(name, function, samples, FLOATS, _GRAD, constant, namespace="ops", family="loss")


def _huber(x, y, delta=1.0):
    d = np.abs(x - y)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


def _smooth(x, y, beta=1.0):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def _nll(x, target, weight=None, reduction=1, ignore_index=-100):
    weight = np.ones(x.shape[1], x.dtype) if weight is None else weight
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    share = np.where(kept, weight[safe], 0)
    values = -share * np.take_along_axis(x, safe[:, None], 1)[:, 0]
    out = (values, values.sum() / share.sum(), values.sum())[reduction]
    return np.asarray(out).astype(x.dtype)


def _cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    logs = special.log_softmax(x.astype(np.float64), 1)
    plain = _nll(logs, target, weight, reduction, ignore_index)
    if label_smoothing:
        w = np.ones(x.shape[1]) if weight is None else weight
        kept = target != ignore_index
        smooth = np.where(kept, -(logs * w[None, :].reshape(1, -1, *[1] * (x.ndim - 2))).sum(1), 0)
        norm = np.where(kept, w[np.where(kept, target, 0)], 0).sum()
        smooth = (smooth, smooth.sum() / norm, smooth.sum())[reduction]
        plain = (1 - label_smoothing) * plain + label_smoothing / x.shape[1] * smooth
    return np.asarray(plain).astype(x.dtype)


def _classes(positive: bool, smoothing: tuple[float, ...]):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, where in (((4, 5), (4,)), ((2, 3, 4), (2, 4)), ((1, 2), (1,))):
            for reduction in (0, 1, 2):
                for given in (None, random_array(rng, (shape[1],), dtype, 0.5, 2)):
                    for share in smoothing:
                        x = random_array(rng, shape, dtype, -3, 3)
                        target = rng.integers(0, shape[1], where)
                        target.flat[0] = 1
                        if target.size > 1:
                            target.flat[-1] = 0 if reduction else -100
                        yield Sample((x, target, given, reduction, -100, *([share] if positive else [])))

    return samples


def _binary(dtype: str, rng: np.random.Generator, low: float, high: float) -> Iterator[Sample]:
    for sample in _pairs(low, high, target=(0, 1))(dtype, rng):
        x, y, reduction = sample.args
        for weight in (None, random_array(rng, x.shape, dtype, 0.5, 2)):
            yield Sample((x, y), {"weight": weight, "reduction": reduction})


def _bce(x, y, weight=None, reduction=1):
    values = -(y * np.log(x) + (1 - y) * np.log1p(-x)) * (1 if weight is None else weight)
    return reduced(values, reduction).astype(x.dtype)


def _bce_logits(x, y, weight=None, reduction=1):
    values = (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))) * (1 if weight is None else weight)
    return reduced(values, reduction).astype(x.dtype)


RECORDS = [
    _record("mse_loss", _loss(lambda x, y: (x - y) ** 2), _pairs()),
    _record("l1_loss", _loss(lambda x, y: np.abs(x - y)), _pairs()),
    _record("huber_loss", _loss(_huber), _pairs(delta=0.7)),
    _record("smooth_l1_loss", _loss(_smooth), _pairs(beta=0.7)),
    _record("nll_loss", _nll, _classes(False, (0.0,)), (2,)),
    _record("cross_entropy_loss", _cross_entropy, _classes(True, (0.0, 0.1)), (2,)),
    _record("binary_cross_entropy", _bce, lambda dtype, rng: _binary(dtype, rng, 0.1, 0.9)),
    OpRecord(
        "binary_cross_entropy_with_logits",
        _bce_logits,
        lambda dtype, rng: _binary(dtype, rng, -3, 3),
        FLOATS,
        _GRAD,
        family="loss",
    ),
]
