"""Records of the gradients of losses, given that of the loss, reduced or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample

_SHAPES = (((), ()), ((5,), (5,)), ((2, 3), (2, 3)), ((0,), (0,)))
_BROADCAST = (*_SHAPES, ((2, 3), (3,)), ((2, 1), (1, 3)))
_CLASSES = (((5,), ()), ((4, 5), (4,)), ((2, 3, 4), (2, 4)), ((1, 2), (1,)))


def _pairs(
    shapes: Any, *rest: float, low: float = -3, high: float = 3, target: tuple[float, float] = (-3, 3)
) -> Any:
    """Incoming gradients, inputs, targets, reductions, and further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in shapes:
            for reduction in (0, 1, 2):
                grad = random_array(rng, () if reduction else np.broadcast_shapes(a, b), dtype)
                x, y = random_array(rng, a, dtype, low, high), random_array(rng, b, dtype, *target)
                yield Sample((grad, x, y, reduction, *rest))

    return samples


def _pair(slope: Callable[..., Any]) -> Callable[..., Any]:
    """The slope of each element times the incoming gradient, over the count for the mean."""

    def call(grad: np.ndarray, x: np.ndarray, y: np.ndarray, reduction: int, *rest: float) -> np.ndarray:
        found = slope(x.astype(np.float64), y.astype(np.float64), *rest)
        return np.asarray(grad * found / (max(1, found.size) if reduction == 1 else 1)).astype(grad.dtype)

    return call


def _huber(x, y, delta):
    return np.clip(x - y, -delta, delta)


def _smooth(x, y, beta):
    d = x - y
    return np.where(np.abs(d) < beta, d / beta, np.sign(d))


def _bce(x, y):
    return (x - y) / np.maximum(x * (1 - x), 1e-12)


def _shares(x: np.ndarray, target: np.ndarray, weight: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """Classes last: the weight of the target of each row, in its class and alone, and which rows count."""
    count = x.shape[1 if x.ndim > 1 else 0]
    kept = target != ignore_index
    weight = np.ones(count) if weight is None else weight.astype(np.float64)
    hot = (np.arange(count) == target[..., None]) & kept[..., None]
    return hot * weight, (hot * weight).sum(-1), kept


def _classes_first(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.moveaxis(rows, -1, 1 if x.ndim > 1 else 0).astype(x.dtype)


def _rows(grad: np.ndarray, reduction: int, total: np.ndarray) -> np.ndarray:
    grad = grad.astype(np.float64)
    return grad / total if reduction == 1 else grad[..., None] if reduction == 0 else grad


def _nll_backward(grad, x, target, weight, reduction, ignore_index, total_weight):
    hot = _shares(x, target, weight, ignore_index)[0]
    return _classes_first(-_rows(grad, reduction, total_weight) * hot, x)


def _cross_entropy_backward(
    grad, x, target, weight, reduction, ignore_index, label_smoothing, log_sum_exp, total_weight
):
    hot, share, kept = _shares(x, target, weight, ignore_index)
    last = np.moveaxis(x.astype(np.float64), 1 if x.ndim > 1 else 0, -1)
    softmax, count = np.exp(last - log_sum_exp[..., None]), last.shape[-1]
    smooth = np.ones(count) if weight is None else weight.astype(np.float64)
    slope = (1 - label_smoothing) * (softmax * share[..., None] - hot)
    slope = slope + label_smoothing / count * kept[..., None] * (softmax * smooth.sum() - smooth)
    return _classes_first(_rows(grad, reduction, total_weight) * slope, x)


def _classes(smoothing: tuple[float, ...] = ()) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, where in _CLASSES:
            dim = 1 if len(shape) > 1 else 0
            for reduction in (0, 1, 2):
                for weight in (None, random_array(rng, (shape[dim],), dtype, 0.5, 2)):
                    for share in smoothing or (None,):
                        x, target = (
                            random_array(rng, shape, dtype),
                            np.asarray(rng.integers(0, shape[dim], where)),
                        )
                        ignored = -100 if weight is None else int(target.flat[-1])
                        target.flat[0] = (ignored + 1) % shape[dim]
                        grad = random_array(rng, () if reduction else where, dtype)
                        total = np.asarray(_shares(x, target, weight, ignored)[1].sum()).astype(dtype)
                        if share is None:
                            yield Sample((grad, x, target, weight, reduction, ignored, total))
                        else:
                            sums = np.asarray(special.logsumexp(x, dim)).astype(dtype)
                            yield Sample((grad, x, target, weight, reduction, ignored, share, sums, total))

    return samples


def _record(name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...], **more: Any) -> OpRecord:
    """Wrong calls are zeros of given shapes, and the words of the message."""
    errors = tuple(
        ErrorSample(
            tuple(np.zeros(a, np.float32) if isinstance(a, tuple) else a for a in args),
            {},
            (RuntimeError, ValueError, IndexError),
            words,
        )
        for args, words in wrong
    )
    more = {"gradient": ("float64",), **more}
    return OpRecord(
        f"{name}_backward",
        reference,
        samples,
        FLOATS,
        namespace="ops",
        errors=errors,
        family="loss",
        cancels=True,
        **more,
    )


def _pair_record(name: str, slope: Callable[..., Any], *rest: float, **more: Any) -> OpRecord:
    wrong = (
        (((2,), (2, 3), (2, 3), 0, *rest), (name, "grad", "(2,)", "(2, 3)")),
        (((2,), (2,), (2,), 1, *rest), (name, "grad", "(2,)")),
        (((), (2, 3), (4,), 1, *rest), (name, "3", "4")),
        (((), (2,), (2,), 3, *rest), (name, "reduction", "3")),
    )
    shapes = _SHAPES if more else _BROADCAST
    return _record(name, _pair(slope), _pairs(shapes, *rest, **more), *wrong)


def _class_errors(name: str, *rest: Any) -> tuple[Any, ...]:
    target = np.zeros(2, np.int64)
    return (
        (((3,), (2, 3), target, None, 0, -100, *rest), (name, "grad", "(3,)", "(2,)")),
        (((), (2, 3), target + 3, None, 1, -100, *rest), ("3",)),
        (((), (2, 3), target, (2,), 1, -100, *rest), (name, "weight", "(2,)")),
    )


RECORDS = [
    _pair_record("mse_loss", lambda x, y: 2 * (x - y)),
    _pair_record("l1_loss", lambda x, y: np.sign(x - y)),
    _pair_record("huber_loss", _huber, 0.7),
    _pair_record("smooth_l1_loss", _smooth, 0.7),
    _pair_record("bce_loss", _bce, low=0.1, high=0.9, target=(0, 1)),
    _pair_record("bce_with_logits_loss", lambda x, y: special.expit(x) - y, target=(0, 1)),
    _record("nll_loss", _nll_backward, _classes(), *_class_errors("nll_loss_backward", ())),
    _record(
        "cross_entropy",
        _cross_entropy_backward,
        _classes((0.0, 0.1)),
        *_class_errors("cross_entropy_backward", 0.0, (2,), ()),
    ),
]
