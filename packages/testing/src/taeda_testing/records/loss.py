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


def _nll(x, target, weight=None, reduction=1, ignore_index=-100):
    """The loss, and the sum of the weights that a mean divides by."""
    x = np.moveaxis(x, 1 if x.ndim > 1 else 0, -1)
    weight = np.ones(x.shape[-1], x.dtype) if weight is None else weight
    kept = target != ignore_index
    safe = np.where(kept, target, 0).astype(np.int64)
    share = np.where(kept, weight[safe], 0)
    values = np.asarray(-share * np.take_along_axis(x, safe[..., None], -1)[..., 0])
    out = (values, values.sum() / share.sum(), values.sum())[reduction]
    return np.asarray(out).astype(x.dtype), share.sum().astype(x.dtype)


def _cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """The loss, the logarithms of the sums of exponentials, and the sum of the weights."""
    dim = 1 if x.ndim > 1 else 0
    sums = special.logsumexp(x.astype(np.float64), dim)
    logs = x - np.expand_dims(sums, dim)
    loss, total = _nll(logs, target, weight, reduction, ignore_index)
    if label_smoothing:
        w = np.ones(x.shape[dim]) if weight is None else weight
        smooth = -np.tensordot(w.astype(np.float64), logs, (0, dim)) * (target != ignore_index)
        smooth = (smooth, smooth.sum() / total, smooth.sum())[reduction]
        loss = (1 - label_smoothing) * loss + label_smoothing / x.shape[dim] * smooth
    return tuple(np.asarray(array).astype(x.dtype) for array in (loss, sums, total))


def _soft_cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """The same for probabilities of all classes."""
    dim = 1 if x.ndim > 1 else 0
    wanted = target * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    values = np.moveaxis(special.log_softmax(x.astype(np.float64), dim) * wanted, dim, -1)
    return reduced(-(values * (1 if weight is None else weight)).sum(-1), reduction).astype(x.dtype)


_CLASSES = (((5,), ()), ((4, 5), (4,)), ((2, 3, 4), (2, 4)), ((1, 2), (1,)))


def _classes(smoothing: tuple[float, ...] = (), default: bool = True):
    """Calls with class indices, one of them ignored; without ``default`` every argument is given."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, where in _CLASSES:
            count = shape[1] if len(shape) > 1 else shape[0]
            for reduction in (0, 1, 2):
                for given in (None, random_array(rng, (count,), dtype, 0.5, 2)):
                    for share in smoothing or (None,):
                        x = random_array(rng, shape, dtype, -3, 3)
                        target = np.asarray(rng.integers(0, count, where))
                        target.flat[0] = 1
                        ignored = -100 if given is None else 0
                        if target.size > 1:
                            target.flat[-1] = 0 if reduction == 2 else ignored
                        yield Sample(
                            (x, target, given, reduction, ignored, *([] if share is None else [share]))
                        )
        x, narrow = random_array(rng, (2, 3), dtype, -3, 3), np.array([2, 0])
        if default:
            yield Sample((x, narrow))
        for target in (narrow.astype(np.uint8), narrow.astype(np.int32)):
            yield Sample((x, target, None, 1, -100, *smoothing[:1]))

    return samples


def _distributions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((3,), (2, 3), (2, 2, 3)):
        count = shape[1] if len(shape) > 1 else shape[0]
        x, target = random_array(rng, shape, dtype, -3, 3), random_array(rng, shape, dtype, 0, 1)
        weight = random_array(rng, (count,), dtype, 0.5, 2)
        for reduction, share, given in ((0, 0.0, None), (1, 0.1, weight), (2, 0.1, None), (1, 0.0, weight)):
            yield Sample((x, target, given, reduction, -100, share))


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


def _first(function):
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def _wrong(*calls) -> tuple[ErrorSample, ...]:
    """Calls with zeros of given shapes, and the words of their messages."""

    def array(value):
        return np.zeros(value, np.float32) if isinstance(value, tuple) else value

    return tuple(
        ErrorSample(tuple(array(a) for a in args), {}, (RuntimeError, ValueError, IndexError), words)
        for args, words in calls
    )


def _pair_errors(name: str) -> tuple[ErrorSample, ...]:
    return _wrong((((2, 3), (4,)), (name, "3", "4")), (((2,), (2,), 3), (name, "reduction", "3")))


def _class_errors(name: str, *rest) -> tuple[ErrorSample, ...]:
    rows = np.zeros(4, np.int64)
    return _wrong(
        (((4, 3), rows + 3, None, 1, -100, *rest), ("3",)),
        (((4, 3), (4,), None, 1, -100, *rest), (name, "target", "float32")),
        (((4, 3), rows, (2,), 1, -100, *rest), (name, "weight", "2", "3")),
        (((4, 3), rows, None, 4, -100, *rest), (name, "reduction", "4")),
        (((), rows, None, 1, -100, *rest), (name, "input")),
    )


_BINARY_ERRORS = (((2, 3), (3,)), ("binary_cross_entropy", "target", "(3,)", "(2, 3)"))
_SMOOTHED = _wrong(
    (((1, 3), np.zeros(1, np.int64), None, 1, -100, 2.0), ("cross_entropy", "label_smoothing", "2"))
)


def _record(name, function, samples, constant=(), namespace="ops", **more):
    return OpRecord(
        name, function, samples, FLOATS, _GRAD, constant, namespace=namespace, family="loss", **more
    )


def _pair_record(name, function, *, out=True, **kwargs):
    """With its default, and with another threshold when it has one."""
    plain = _record(name, _loss(function), _broadcast, out=out, errors=_pair_errors(name))
    return [plain, _record(name, _loss(function), _pairs(**kwargs), out=out)] if kwargs else [plain]


RECORDS = [
    *_pair_record("mse_loss", lambda x, y: (x - y) ** 2),
    *_pair_record("l1_loss", lambda x, y: np.abs(x - y), out=False),
    *_pair_record("huber_loss", _huber, delta=0.7),
    *_pair_record("smooth_l1_loss", _smooth, beta=0.7),
    _record("nll_loss", _first(_nll), _classes(), (2,), errors=_class_errors("nll_loss")),
    _record("nll_loss_forward", _nll, _classes(default=False), (2,), errors=_class_errors("nll_loss")),
    _record(
        "cross_entropy_loss",
        _first(_cross_entropy),
        _classes((0.0, 0.1)),
        (2,),
        errors=(*_class_errors("cross_entropy_loss"), *_SMOOTHED),
    ),
    _record("cross_entropy_loss", _soft_cross_entropy, _distributions, (2,)),
    _record(
        "cross_entropy_forward",
        _cross_entropy,
        _classes((0.0, 0.1), default=False),
        (2,),
        errors=_class_errors("cross_entropy_loss", 0.0),
    ),
    _record(
        "binary_cross_entropy",
        _bce,
        lambda dtype, rng: _binary(dtype, rng, 0.1, 0.9),
        errors=_wrong(_BINARY_ERRORS),
    ),
    _record("bce_loss", _loss(_clamped_bce), _same(0.1, 0.9, 0.0, 1.0), errors=_wrong(_BINARY_ERRORS)),
    _record(
        "binary_cross_entropy_with_logits", _bce_logits, _logits, namespace="", errors=_wrong(_BINARY_ERRORS)
    ),
    _record(
        "bce_with_logits_loss",
        _loss(_plain_logits),
        _same(-3, 3, -800.0, 800.0),
        errors=_wrong(_BINARY_ERRORS),
    ),
    _record(
        "kl_div",
        lambda x, *a, **k: _divergence(x, *a, **k).astype(x.dtype),
        _divergences,
        namespace="",
        errors=_wrong((((2, 3), (4,)), ("3", "4")), (((2,), (2,), 3), ("kl_div", "reduction", "3"))),
    ),
]
