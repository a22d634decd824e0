"""Records of losses and their gradients; the reduction is a number: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import in_double, p_distance, random_array
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample
from taeda_testing.sampling import Sampler, sized
from taeda_testing.vocabulary import composed
from taeda_testing.wrong import REFUSED, misfit, zeros

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
        differentiable=True,
        constant=constant,
        namespace=namespace,
        cancels=True,
        **more,
    )


def _pair_record(name, function, *, out=True, half="elements", **kwargs):
    """With its default, and with another threshold when it has one."""
    plain = record(name, _loss(function), _broadcast, out=out, half=half, errors=_pair_errors(name))
    more = [record(name, _loss(function), _pairs(**kwargs), out=out, half=half)] if kwargs else []
    return [plain, *more]


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

_GRADIENT_SHAPES = (((), ()), ((5,), (5,)), ((2, 3), (2, 3)), ((0,), (0,)))

_BROADCAST = (*_GRADIENT_SHAPES, ((2, 3), (3,)), ((2, 1), (1, 3)))


def _gradients(
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


def _slope(slope: Callable[..., Any]) -> Callable[..., Any]:
    """The slope of each element times the incoming gradient, over the count for the mean."""

    def call(grad: np.ndarray, x: np.ndarray, y: np.ndarray, reduction: int, *rest: float) -> np.ndarray:
        found = slope(x.astype(np.float64), y.astype(np.float64), *rest)
        return np.asarray(grad * found / (max(1, found.size) if reduction == 1 else 1)).astype(grad.dtype)

    return call


def _huber_backward(x, y, delta):
    return np.clip(x - y, -delta, delta)


def _smooth_backward(x, y, beta):
    d = x - y
    return np.where(np.abs(d) < beta, d / beta, np.sign(d))


def _bce_backward(x, y):
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


def _class_gradients(smoothing: tuple[float, ...] = ()) -> Any:
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


def _backward(name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...], **more: Any) -> OpRecord:
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
    more = {"differentiable": True, **more}
    return OpRecord(
        name,
        reference,
        samples,
        FLOATS,
        namespace="ops",
        errors=errors,
        cancels=True,
        **more,
    )


def _pair_backward(name: str, slope: Callable[..., Any], *rest: float, **more: Any) -> OpRecord:
    wrong = (
        (((2,), (2, 3), (2, 3), 0, *rest), (name, "grad", "(2,)", "(2, 3)")),
        (((2,), (2,), (2,), 1, *rest), (name, "grad", "(2,)")),
        (((), (2, 3), (4,), 1, *rest), (name, "3", "4")),
        (((), (2,), (2,), 3, *rest), (name, "reduction", "3")),
    )
    shapes = _GRADIENT_SHAPES if more else _BROADCAST
    return _backward(name, _slope(slope), _gradients(shapes, *rest, **more), *wrong)


def _class_backward_errors(name: str, *rest: Any) -> tuple[Any, ...]:
    target = np.zeros(2, np.int64)
    return (
        (((3,), (2, 3), target, None, 0, -100, *rest), (name, "grad", "(3,)", "(2,)")),
        (((), (2, 3), target + 3, None, 1, -100, *rest), ("3",)),
        (((), (2, 3), target, (2,), 1, -100, *rest), (name, "weight", "(2,)")),
    )


def _cosine_loss(a, b, target, margin=0.0, reduction=1):
    lengths = np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    cosine = (a * b).sum(-1) / lengths
    return reduced(np.where(target == 1, 1 - cosine, np.maximum(cosine - margin, 0)), reduction)


def _hinge(x, target, margin=1.0, reduction=1):
    return reduced(np.where(target == 1, x, np.maximum(margin - x, 0)), reduction)


def _ranking(a, b, target, margin=0.0, reduction=1):
    return reduced(np.maximum(-target * (a - b) + margin, 0), reduction)


def _soft_margin(x, target, reduction=1):
    return reduced(np.logaddexp(0, -target * x), reduction)


def _triplet(a, near, far, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    away = p_distance(a, far, p, eps)
    if swap:
        away = np.minimum(away, p_distance(near, far, p, eps))
    return reduced(np.maximum(p_distance(a, near, p, eps) - away + margin, 0), reduction)


def _multi_margin(x, target, p=1, margin=1.0, weight=None, reduction=1):
    rows, classes = np.atleast_2d(x), np.atleast_1d(target)
    losses = []
    for row, c in zip(rows, classes, strict=True):
        gaps = np.maximum(np.delete(margin - row[c] + row, c), 0) ** p
        losses.append(gaps.sum() * (1 if weight is None else weight[c]) / len(row))
    values = np.asarray(losses, np.float64)
    return reduced(values[0] if x.ndim < 2 else values, reduction)


def _poisson(x, target, log_input=True, full=False, eps=1e-8, reduction=1):
    loss = np.exp(x) - target * x if log_input else x - target * np.log(x + eps)
    if full:
        t = np.maximum(target, 1)
        loss = loss + np.where(target > 1, special.xlogy(t, t) - t + 0.5 * np.log(2 * np.pi * t), 0)
    return reduced(loss, reduction)


def _signed(*calls: tuple) -> Sampler:
    """Arrays, and a target of 1 and -1 in the place of "signs"."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shapes, size, *rest in calls:
            for reduction in (0, 1, 2):
                arrays = (random_array(rng, shape, dtype) for shape in shapes)
                target = np.asarray(rng.choice([-1, 1], size)).astype(dtype)
                yield Sample((*arrays, target, *rest, reduction))

    return samples


def _scores(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, size in (((3, 4), (3,)), ((4,), ()), ((1, 2), (1,))):
        for p, margin, reduction in ((1, 1.0, 1), (2, 0.5, 0), (1, 0.5, 2)):
            for weight in (None, random_array(rng, shape[-1:], dtype, 0.5, 2)):
                x, target = random_array(rng, shape, dtype), rng.integers(0, shape[-1], size)
                yield Sample((x, np.asarray(target), p, margin, weight, reduction))


def _counts(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), ()):
        for log_input, full in ((True, False), (False, False), (True, True), (False, True)):
            for reduction in (0, 1, 2):
                x = random_array(rng, shape, dtype, 0.5, 2)
                yield Sample((x, random_array(rng, shape, dtype, 1.5, 6), log_input, full, 1e-8, reduction))


_NEAR_CTC: dict[str, Any] = {"rtol": {"float32": 1e-4}, "atol": {"float32": 1e-4}, "half": ""}


def _alignments(steps: int, classes: int, target: Any, blank: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of classes that becomes the target when repetitions and then blanks are left out."""
    for path in itertools.product(range(classes), repeat=steps):
        if [c for c, _ in itertools.groupby(path) if c != blank] == list(target):
            yield path


def _sequences(log_probs, targets, inputs, lengths) -> Iterator[tuple[np.ndarray, list[int]]]:
    """The probabilities (T, C) and the target of each in the batch; targets (N, S), or one after the other."""
    rows = targets if targets.ndim == 2 else np.split(targets, np.cumsum(lengths)[:-1])
    for n, (steps, length) in enumerate(zip(inputs, lengths, strict=True)):
        yield np.exp(log_probs[:steps, n].astype(np.float64)), [int(c) for c in rows[n][:length]]


def _chance(p: np.ndarray, path: tuple[int, ...]) -> float:
    return float(np.prod([p[t, c] for t, c in enumerate(path)]))


def _ctc(log_probs, targets, inputs, lengths, blank=0, reduction=1, zero_infinity=False):
    single = log_probs.ndim == 2
    batch = log_probs[:, None] if single else log_probs
    inputs, lengths = np.reshape(inputs, -1), np.reshape(lengths, -1)
    losses = []
    for p, target in _sequences(batch, targets, inputs, lengths):
        chance = sum(_chance(p, path) for path in _alignments(*p.shape, target, blank))
        losses.append(-np.log(chance) if chance else 0.0 if zero_infinity else np.inf)
    found = np.array(losses)
    if reduction == 1:
        found = (found / np.maximum(lengths, 1)).mean()
    elif reduction == 2:
        found = found.sum()
    elif single:
        found = found[0]
    return np.asarray(found).astype(log_probs.dtype)


def _ctc_forward(log_probs, targets, inputs, lengths, blank, zero_infinity):
    alphas = np.full((log_probs.shape[1], len(log_probs), 2 * targets.shape[1] + 1), -np.inf, log_probs.dtype)
    for n, (p, target) in enumerate(_sequences(log_probs, targets, inputs, lengths)):
        states = [blank, *itertools.chain(*((c, blank) for c in target))]
        chances = np.zeros((len(p) + 1, len(states) + 2))
        chances[0, 1] = 1  # what the first two states follow
        for t, row in enumerate(p, 1):
            for s, c in enumerate(states):
                before = [chances[t - 1, s + 2], chances[t - 1, s + 1]]
                if t > 1 and s > 1 and c not in (blank, states[s - 2]):
                    before.append(chances[t - 1, s])
                if t == 1:
                    before = [1.0 if s < 2 else 0.0]
                chances[t, s + 2] = row[c] * sum(before)
        with np.errstate(divide="ignore"):
            alphas[n, : len(p), : len(states)] = np.log(chances[1:, 2:])
    return _ctc(log_probs, targets, inputs, lengths, blank, 0), alphas


def _ctc_backward(grad, log_probs, targets, inputs, lengths, losses, alphas, blank, zero_infinity):
    out = np.zeros(log_probs.shape)
    for n, (p, target) in enumerate(_sequences(log_probs, targets, inputs, lengths)):
        posterior, total = np.zeros(p.shape), 0.0
        for path in _alignments(*p.shape, target, blank):
            chance = _chance(p, path)
            total += chance
            posterior[np.arange(len(p)), path] += chance
        if total:
            out[: len(p), n] = (p - posterior / total) * grad[n]
    return out.astype(log_probs.dtype)


_CTC = (
    ((4, 2, 3), ((1, 2), (2, 2)), (4, 4), (2, 2)),
    ((5, 3, 3), ((1, 1), (2, 0), (0, 0)), (5, 3, 4), (2, 1, 0)),
)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _utterances(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    note = "the gradient is that of a log_softmax"
    for shape, targets, *lengths in _CTC:
        x = _log_softmax(random_array(rng, shape, dtype))
        inputs, outputs = map(np.array, lengths)
        joined = np.concatenate([np.array(row)[:n] for row, n in zip(targets, lengths[1], strict=True)])
        for reduction in (0, 1, 2):
            yield Sample((x, np.array(targets), inputs, outputs, 0, reduction), {}, note)
        yield Sample((x, joined.astype(np.int64), inputs, outputs), {}, note)
        yield Sample((x, np.array(targets), *lengths), {}, note)
    yield Sample((x[:, 0], np.array([1, 2]), np.array(4), np.array(2), 0, 0), {}, note)
    yield Sample((x[:2, :1], np.array([[1, 1]]), np.array([2]), np.array([2]), 0, 0, True), {}, note)
    yield Sample((x[:2, :1], np.array([[1, 1]]), np.array([2]), np.array([2])), {}, note)


def _ctc_steps(backward: bool) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, targets, *lengths in _CTC:
            x = _log_softmax(random_array(rng, shape, dtype))
            given = (x, np.array(targets), *map(np.array, lengths))
            if not backward:
                yield Sample((*given, 0, False), {}, "the gradient is that of a log_softmax")
                continue
            losses, alphas = _ctc_forward(*given, 0, False)
            yield Sample((random_array(rng, shape[1:2], dtype), *given, losses, alphas, 0, False))

    return samples


def _ctc_errors(name: str, *rest: Any, refused: str = "float32") -> tuple[ErrorSample, ...]:
    """What is refused; ``refused``: a dtype that targets may not have."""
    x, targets, inputs, lengths = (
        zeros(4, 2, 3),
        np.ones((2, 2), np.int64),
        np.array([4, 4]),
        np.array([2, 2]),
    )
    kinds = (RuntimeError, ValueError, IndexError)
    return (
        *misfit(
            name, x, targets, inputs, np.array([2, 3]), *rest, error=kinds, words=("target_lengths", "3")
        ),
        *misfit(
            name, x, targets, np.array([4, 5]), lengths, *rest, error=kinds, words=("input_lengths", "5")
        ),
        *misfit(name, x, targets, np.array([4]), lengths, *rest, error=kinds, words=("input_lengths",)),
        *misfit(name, x, targets + 2, inputs, lengths, *rest, error=kinds, words=("targets", "3")),
        *misfit(name, x, targets, inputs, lengths, 3, *rest[1:], error=kinds, words=("blank", "3")),
        *misfit(
            name, x, targets.astype(refused), inputs, lengths, *rest, error=kinds, words=("targets", refused)
        ),
    )


def _multilabel(x, target, reduction=1):
    rows, labels = np.atleast_2d(x), np.atleast_2d(target)
    losses = []
    for row, own in zip(rows, labels, strict=True):
        wanted = [int(c) for c in itertools.takewhile(lambda c: c >= 0, own)]
        others = [c for c in range(len(row)) if c not in wanted]
        losses.append(sum(max(0.0, 1 - row[t] + row[c]) for t in wanted for c in others) / len(row))
    found = np.array(losses)
    return (
        found.mean()
        if reduction == 1
        else found.sum()
        if reduction == 2
        else found
        if x.ndim == 2
        else found[0]
    )


def _labelled(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for reduction in (0, 1, 2):
        labels = np.array([[1, 3, -1, 0], [-1, 0, 2, 1], [0, 1, 2, 3]])
        yield Sample((random_array(rng, (3, 4), dtype), labels, reduction))
        yield Sample((random_array(rng, (3,), dtype), np.array([2, -1, -1]), reduction))


RECORDS = [
    *_pair_record("mse_loss", lambda x, y: (x - y) ** 2),
    *_pair_record("l1_loss", lambda x, y: np.abs(x - y), out=False),
    *_pair_record("huber_loss", _huber, delta=0.7),
    *_pair_record("smooth_l1_loss", _smooth, beta=0.7, half="largest"),
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
    record(
        "nll_loss",
        _first(_nll),
        _classes(),
        (2,),
        errors=(
            *_class_errors("nll_loss"),
            *(ErrorSample((zeros(4, 3), np.zeros(2, np.int64)), {}, REFUSED, ()),),
        ),
    ),
    record("nll_loss_forward", _nll, _classes(default=False), (2,), errors=_class_errors("nll_loss")),
    record(
        "cross_entropy_loss",
        _first(_cross_entropy),
        _classes((0.0, 0.1)),
        (2,),
        errors=(
            *(*_class_errors("cross_entropy_loss"), *_SMOOTHED),
            *(ErrorSample((zeros(4, 3), np.zeros(2, np.int64)), {}, REFUSED, ()),),
        ),
    ),
    record("cross_entropy_loss", _soft_cross_entropy, _distributions, (2,)),
    record(
        "cross_entropy_forward",
        _cross_entropy,
        _classes((0.0, 0.1), default=False),
        (2,),
        errors=_class_errors("cross_entropy_loss", 0.0),
        half="largest",
    ),
    _pair_backward("mse_loss_backward", lambda x, y: 2 * (x - y)),
    _pair_backward("l1_loss_backward", lambda x, y: np.sign(x - y)),
    _pair_backward("huber_loss_backward", _huber_backward, 0.7),
    _pair_backward("smooth_l1_loss_backward", _smooth_backward, 0.7),
    _pair_backward("bce_loss_backward", _bce_backward, low=0.1, high=0.9, target=(0, 1)),
    _pair_backward("bce_with_logits_loss_backward", lambda x, y: special.expit(x) - y, target=(0, 1)),
    _backward(
        "nll_loss_backward",
        _nll_backward,
        _class_gradients(),
        *_class_backward_errors("nll_loss_backward", ()),
    ),
    _backward(
        "cross_entropy_backward",
        _cross_entropy_backward,
        _class_gradients((0.0, 0.1)),
        *_class_backward_errors("cross_entropy_backward", 0.0, (2,), ()),
    ),
    composed("cosine_embedding_loss", in_double(_cosine_loss), _signed(
        (((4, 3), (4, 3)), (4,), 0.0), (((2, 2, 3),) * 2, (2, 2), 0.3), (((3,), (3,)), (), 0.0)
    ), errors=misfit("", (2, 3), (2, 4), (2,), words=("3", "4"))),
    composed("hinge_embedding_loss", in_double(_hinge), _signed(
        (((4,),), (4,), 1.0), (((2, 3),), (2, 3), 0.5), (((2, 3),), (3,), 1.0)
    ), errors=(
        *misfit("hinge_embedding_loss", (2,), (2,), 1.0, 5, words=("reduction", "5")),
        *misfit("", (2, 3), (4,), words=("3", "4")),
    )),
    composed("margin_ranking_loss", in_double(_ranking), _signed(
        (((4,), (4,)), (4,), 0.0), (((2, 3), (2, 3)), (3,), 0.5)
    ), errors=misfit("", (2, 3), (4,), (3,), words=("3", "4"))),
    OpRecord(
        "ctc_loss", _ctc, _utterances, FLOATS, differentiable=True,
        errors=_ctc_errors("ctc_loss", refused="complex64"), **_NEAR_CTC,
    ),
    OpRecord(
        "ctc_loss_backward", _ctc_backward, _ctc_steps(True), FLOATS, namespace="ops", second=False, **_NEAR_CTC,
        errors=misfit("ctc_loss_backward", (3,), zeros(4, 2, 3), np.ones((2, 2), np.int64), np.array([4, 4]),
                      np.array([2, 2]), (2,), (2, 4, 5), 0, False, words=("grad", "(3,)")),
    ),
    OpRecord("ctc_loss_forward", _ctc_forward, _ctc_steps(False), FLOATS, differentiable=True, namespace="ops",
             errors=_ctc_errors("ctc_loss", 0, False), **_NEAR_CTC),
    composed("multilabel_margin_loss", in_double(_multilabel), _labelled, namespace="ops", errors=(
        *misfit("multilabel_margin_loss", (2, 3), np.zeros((2, 4), np.int64), words=("target", "(2, 4)")),
        *misfit("multilabel_margin_loss", (2, 3), zeros(2, 3), words=("target", "float32")),
        *misfit("multilabel_margin_loss", (2, 3), np.zeros((2, 3), np.int64), 5, words=("reduction", "5")),
    )),
    composed("multi_margin_loss", in_double(_multi_margin), _scores, namespace="ops", constant=(4,), errors=(
        *misfit("multi_margin_loss", (2, 3), (2,), 3, words=("p", "3")),
        *misfit("multi_margin_loss", (2, 3), (4,), words=("target", "(4,)")),
        *misfit("multi_margin_loss", (2, 3), np.zeros(2, np.int64), 1, 1.0, (4,), words=("weight", "(4,)")),
    )),
    composed("poisson_nll_loss", in_double(_poisson), _counts, errors=misfit(
        "poisson_nll_loss", (2,), (2,), True, False, 1e-8, 3, words=("reduction", "3")
    )),
    composed("soft_margin_loss", in_double(_soft_margin), _signed((((4,),), (4,)), (((2, 3),), (2, 3))),
            namespace="ops", errors=misfit("soft_margin_loss", (2, 3), (2,), words=("(2, 3)", "(2,)"))),
    composed("triplet_margin_loss", in_double(_triplet), sized(
        *(((4, 3),) * 3 + (1.0, p, 1e-6, swap, r) for p in (2.0, 1.0, 3.0) for swap in (False, True) for r in (0, 1)),
    ), FLOATS_AND_COMPLEX, errors=misfit("triplet_margin_loss", (2, 3), (2, 3), (2, 3), -1.0, words=("margin", "-1"))),
]  # fmt: skip
