"""Records of normalisation: results, the statistics they used, and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import REFUSED, wrong_call, zeros

_TOLERANCE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-4, "complex64": 1e-4}}


def channels(x: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions but that of the channels, and a shape for one number for each channel."""
    return (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))


def trailing(x: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(x.ndim - len(shape), x.ndim))


def grouped(x: np.ndarray, groups: int) -> tuple[int, int, int]:
    """The shape in which the last dimension is one group of one sample."""
    return x.shape[0], groups, math.prod(x.shape[1:]) // groups


def _normalised(x: np.ndarray, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """The normalised values, with the mean and the reciprocal deviation that they come from."""
    x = x.astype(np.float64)
    mean, rstd = x.mean(axes, keepdims=True), 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def scaled(
    out: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, shape: Any = None
) -> np.ndarray:
    out = out if weight is None else out * (weight.reshape(shape) if shape else weight)
    return out if bias is None else out + (bias.reshape(shape) if shape else bias)


def batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    axes, shape = channels(x)
    if training:
        out, mean, rstd = _normalised(x, axes, eps)
    else:
        mean, rstd = mean.reshape(shape), 1 / np.sqrt(var.reshape(shape).astype(np.float64) + eps)
        out = (x - mean) * rstd
    results = (scaled(out, weight, bias, shape), mean.ravel(), rstd.ravel())
    return tuple(array.astype(x.dtype) for array in results)


def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    out, mean, rstd = _normalised(x, trailing(x, shape), eps)
    return tuple(array.astype(x.dtype) for array in (scaled(out, weight, bias), mean, rstd))


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    parts = grouped(x, groups)
    out, mean, rstd = _normalised(x.reshape(parts), (2,), eps)
    out = scaled(out.reshape(x.shape), weight, bias, channels(x)[1])
    return tuple(array.astype(x.dtype) for array in (out, mean[..., 0], rstd[..., 0]))


def _instance_norm(x, weight=None, bias=None, mean=None, var=None, own=True, momentum=0.1, eps=1e-5):
    if not own:
        return batch_norm(x, weight, bias, mean, var, False, momentum, eps)[0]
    axes, shape = tuple(range(2, x.ndim)), channels(x)[1]
    return scaled(_normalised(x, axes, eps)[0], weight, bias, shape).astype(x.dtype)


def _rms_norm(x, shape, weight=None, eps=None):
    eps = np.finfo(x.dtype).eps if eps is None else eps
    square = (widest(x) ** 2).mean(trailing(x, shape), keepdims=True)
    return scaled(x / np.sqrt(square + eps), weight, None).astype(x.dtype)


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def batches(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4, 3), (3, 2, 5), (2, 3, 4, 5), (2, 2, 1, 3, 2)):
        c = (shape[1],)
        scale, shift, mean = (random_array(rng, c, dtype) for _ in range(3))
        var = random_array(rng, c, dtype, 0.5, 2)
        x = random_array(rng, shape, dtype)
        yield Sample((x, scale, shift, None, None, True, 0.1, 1e-5))
        yield Sample((x, None, shift, mean.copy(), var.copy(), True, 0.1, 1e-5))


def evaluated(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in batches(dtype, rng):
        x, scale, shift = sample.args[:3]
        c = (x.shape[1],)
        mean, var = random_array(rng, c, dtype), random_array(rng, c, dtype, 0.5, 2)
        yield Sample((x, scale, shift, mean, var, False, 0.1, 1e-3))


def layers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, last in (((5,), (5,)), ((3, 4), (4,)), ((0, 3), (3,)), ((2, 3, 4), (3, 4)), ((40, 33), (33,))):
        x = random_array(rng, shape, dtype)
        yield Sample((x, last, None, None, 1e-5))
        yield Sample((x, last, random_array(rng, last, dtype), random_array(rng, last, dtype), 1e-3))
        yield Sample((x, last, random_array(rng, last, dtype), None, 1e-3))


def groups_of(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, groups in (((2, 4), 2), ((0, 2, 3), 1), ((2, 6, 3), 3), ((1, 4, 3, 2), 1)):
        x, c = random_array(rng, shape, dtype), (shape[1],)
        yield Sample((x, groups, None, None, 1e-5))
        yield Sample((x, groups, random_array(rng, c, dtype), random_array(rng, c, dtype), 1e-3))
        yield Sample((x, groups, None, random_array(rng, c, dtype), 1e-5))


def _instances(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((2, 3, 4), (1, 2, 3, 2), (2, 1, 2, 2, 2), (0, 2, 3)):
        x, c = random_array(rng, shape, dtype), (shape[1],)
        yield Sample((x,))
        scale, shift, mean = (random_array(rng, c, dtype) for _ in range(3))
        yield Sample((x, scale, shift), {"eps": 1e-3})
        for own in (True, False):
            yield Sample((x, scale, None, mean.copy(), random_array(rng, c, dtype, 0.5, 2), own, 0.3, 1e-3))


def _short(samples: Any, keep: int) -> Any:
    """The calls of other samples, also without the arguments that have a default."""

    def calls(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in samples(dtype, rng):
            bare = sample.args[2] is None and sample.args[3] is None
            yield Sample(sample.args[:keep] if bare else sample.args, note=sample.note)

    return calls


def _roots(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for x, shape, weight, bias, eps in (sample.args for sample in layers(dtype, rng)):
        yield Sample((x, shape, weight, eps) if bias is None else (x, shape, weight))


def _errors(*calls: tuple[Any, ...]) -> tuple[ErrorSample, ...]:
    """Calls, and the words of their messages."""
    return tuple(ErrorSample(args, {}, REFUSED, words) for args, words in calls)


_X = zeros(2, 4, 3)

_BATCH = _errors(
    ((_X, zeros(3), None, None, None, True, 0.1, 1e-5), ("batch_norm", "weight", "3", "4")),
    ((_X, None, None, zeros(3), zeros(4), True, 0.1, 1e-5), ("batch_norm", "running_mean", "3", "4")),
    ((_X, None, None, None, None, False, 0.1, 1e-5), ("batch_norm", "running_mean", "running_var")),
    ((zeros(1, 4), None, None, None, None, True, 0.1, 1e-5), ("batch_norm", "input", "(1, 4)")),
    ((zeros(4), None, None, None, None, True, 0.1, 1e-5), ("batch_norm", "input", "(4,)")),
)

_LAYER = _errors(
    ((_X, (4,), None, None, 1e-5), ("layer_norm", "input", "4")),
    ((_X, (), None, None, 1e-5), ("layer_norm", "normalized_shape")),
    ((_X, (3,), zeros(4), None, 1e-5), ("layer_norm", "weight", "4")),
    ((_X, (3,), None, zeros(1), 1e-5), ("layer_norm", "bias", "1")),
)

_GROUP = _errors(
    ((_X, 3, None, None, 1e-5), ("group_norm", "num_groups", "3", "4")),
    ((_X, 0, None, None, 1e-5), ("group_norm", "num_groups", "0")),
    ((_X, 2, zeros(2), None, 1e-5), ("group_norm", "weight", "2", "4")),
    ((zeros(4), 2, None, None, 1e-5), ("group_norm", "input", "(4,)")),
)

_INSTANCE = _errors(((zeros(4),), ("instance_norm", "input")), ((_X, zeros(3)), ("weight", "3", "4")))

_ROOT = _errors(((_X, (4,)), ("rms_norm", "input", "4")))


def _record(
    name,
    reference,
    samples,
    errors=(),
    differentiable=True,
    namespace="",
    constant=(),
    writes=(),
    dtypes=FLOATS,
):
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        differentiable=differentiable,
        constant=constant,
        writes=writes,
        namespace=namespace,
        errors=errors,
        cancels=True,
        **_TOLERANCE,
    )


def _through(g: np.ndarray, xhat: np.ndarray, rstd: Any, axes: tuple[int, ...]) -> np.ndarray:
    """The gradient of normalised values, given that of the result."""
    inner = g.mean(axes, keepdims=True) + xhat * (g * xhat).mean(axes, keepdims=True)
    return rstd * (g - inner)


def _batch_norm_backward(grad, x, weight, mean, rstd, training, output_mask=7):
    axes, shape = channels(x)
    mean, rstd = mean.reshape(shape), rstd.reshape(shape).astype(np.float64)
    xhat, g = (x - mean) * rstd, scaled(grad.astype(np.float64), weight, None, shape)
    given = _through(g, xhat, rstd, axes) if training else g * rstd
    results = (given, (grad * xhat).sum(axes), grad.sum(axes))
    return tuple(array.astype(grad.dtype) for array in results)


def _layer_norm_backward(grad, x, shape, mean, rstd, weight, output_mask=7):
    axes, rows = trailing(x, shape), tuple(range(x.ndim - len(shape)))
    xhat, g = (x - mean) * rstd.astype(np.float64), scaled(grad.astype(np.float64), weight, None)
    results = (_through(g, xhat, rstd, axes), (grad * xhat).sum(rows), grad.sum(rows))
    return tuple(np.asarray(array).astype(grad.dtype) for array in results)


def _group_norm_backward(grad, x, groups, mean, rstd, weight, output_mask=7):
    (axes, shape), parts = channels(x), grouped(x, groups)
    rstd = rstd[..., None].astype(np.float64)
    xhat = (x.reshape(parts) - mean[..., None]) * rstd
    g = scaled(grad.astype(np.float64), weight, None, shape).reshape(parts)
    results = (
        _through(g, xhat, rstd, (2,)).reshape(x.shape),
        (grad * xhat.reshape(x.shape)).sum(axes),
        grad.sum(axes),
    )
    return tuple(array.astype(grad.dtype) for array in results)


def _batch_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for samples in (batches, evaluated):
        for sample in samples(dtype, rng):
            x, weight, training = sample.args[0], sample.args[1], sample.args[5]
            statistics = batch_norm(*sample.args)[1:]
            yield Sample((random_array(rng, x.shape, dtype), x, weight, *statistics, training))


def _gradients(forward: Callable[..., Any], samples: Any) -> Any:
    def calls(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in samples(dtype, rng):
            x, parts, weight = sample.args[:3]
            yield Sample((random_array(rng, x.shape, dtype), x, parts, *forward(*sample.args)[1:], weight))

    return calls


def _backward(name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...]) -> OpRecord:
    near = {"float32": 1e-4}
    kinds = (RuntimeError, ValueError)
    errors = tuple(ErrorSample(args, {}, kinds, (name, *words)) for args, words in wrong)
    return OpRecord(
        name,
        reference,
        samples,
        differentiable=True,
        namespace="ops",
        rtol=near,
        atol=near,
        errors=errors,
        cancels=True,
    )


_ROWS, _ONE = np.zeros((2, 4), np.float32), np.zeros((1, 1), np.float32)


RECORDS = [
    _record("batch_norm", _first(batch_norm), batches, _BATCH, constant=(3, 4), writes=(3, 4)),
    _record("batch_norm", _first(batch_norm), evaluated, constant=(3, 4), writes=(3, 4)),
    _record(
        "native_batch_norm", batch_norm, batches, _BATCH, constant=(3, 4), writes=(3, 4), namespace="ops"
    ),
    _record("native_batch_norm", batch_norm, evaluated, constant=(3, 4), writes=(3, 4), namespace="ops"),
    _record(
        "layer_norm",
        _first(layer_norm),
        _short(layers, 2),
        (*_LAYER, wrong_call(REFUSED, "4", zeros(2, 3), (4,))),
    ),
    _record("native_layer_norm", layer_norm, layers, _LAYER, namespace="ops"),
    _record("rms_norm", _rms_norm, _roots, _ROOT, dtypes=FLOATS_AND_COMPLEX),
    _record("group_norm", _first(group_norm), _short(groups_of, 2), _GROUP),
    _record("native_group_norm", group_norm, groups_of, _GROUP, namespace="ops"),
    _record("instance_norm", _instance_norm, _instances, _INSTANCE, constant=(3, 4), writes=(3, 4)),
    _backward(
        "batch_norm_backward",
        _batch_norm_backward,
        _batch_gradients,
        ((_ROWS, _ROWS, None, _ONE[0], _ONE[0], True), ("save_mean",)),
        ((_ROWS[:1], _ROWS, None, _ROWS[0], _ROWS[0], True), ("grad",)),
    ),
    _backward(
        "layer_norm_backward",
        _layer_norm_backward,
        _gradients(layer_norm, layers),
        ((_ROWS, _ROWS, (4,), _ONE, _ONE, None), ("mean",)),
    ),
    _backward(
        "group_norm_backward",
        _group_norm_backward,
        _gradients(group_norm, groups_of),
        ((_ROWS, _ROWS, 2, _ONE, _ONE, None), ("mean",)),
    ),
]
