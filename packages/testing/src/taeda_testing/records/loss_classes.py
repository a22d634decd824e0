"""Records of losses over classes, given by index or as probabilities of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from taeda_testing.arrays import random_array
from taeda_testing.record import ErrorSample, Sample
from taeda_testing.records.loss import record, reduced, wrong


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


def _first(function):
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def _class_errors(name: str, *rest) -> tuple[ErrorSample, ...]:
    rows = np.zeros(4, np.int64)
    return wrong(
        (((4, 3), rows + 3, None, 1, -100, *rest), ("3",)),
        (((4, 3), (4,), None, 1, -100, *rest), (name, "target", "float32")),
        (((4, 3), rows, (2,), 1, -100, *rest), (name, "weight", "2", "3")),
        (((4, 3), rows, None, 4, -100, *rest), (name, "reduction", "4")),
        (((), rows, None, 1, -100, *rest), (name, "input")),
    )


_SMOOTHED = wrong(
    (((1, 3), np.zeros(1, np.int64), None, 1, -100, 2.0), ("cross_entropy", "label_smoothing", "2"))
)


RECORDS = [
    record("nll_loss", _first(_nll), _classes(), (2,), errors=_class_errors("nll_loss")),
    record("nll_loss_forward", _nll, _classes(default=False), (2,), errors=_class_errors("nll_loss")),
    record(
        "cross_entropy_loss",
        _first(_cross_entropy),
        _classes((0.0, 0.1)),
        (2,),
        errors=(*_class_errors("cross_entropy_loss"), *_SMOOTHED),
    ),
    record("cross_entropy_loss", _soft_cross_entropy, _distributions, (2,)),
    record(
        "cross_entropy_forward",
        _cross_entropy,
        _classes((0.0, 0.1), default=False),
        (2,),
        errors=_class_errors("cross_entropy_loss", 0.0),
    ),
]
