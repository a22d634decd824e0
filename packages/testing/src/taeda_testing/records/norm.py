"""Records of normalisation: results, with the statistics they used, and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample

_GRAD = ("float64",)
_TOLERANCE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-4, "complex64": 1e-4}}
_WRONG = (RuntimeError, ValueError)


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


def _instance_norm(x, weight=None, bias=None, eps=1e-5):
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
        yield Sample((x, random_array(rng, c, dtype), random_array(rng, c, dtype), 1e-3))


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


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _errors(*calls: tuple[Any, ...]) -> tuple[ErrorSample, ...]:
    """Calls, and the words of their messages."""
    return tuple(ErrorSample(args, {}, _WRONG, words) for args, words in calls)


_X = _zeros(2, 4, 3)
_BATCH = _errors(
    ((_X, _zeros(3), None, None, None, True, 0.1, 1e-5), ("batch_norm", "weight", "3", "4")),
    ((_X, None, None, _zeros(3), _zeros(4), True, 0.1, 1e-5), ("batch_norm", "running_mean", "3", "4")),
    ((_X, None, None, None, None, False, 0.1, 1e-5), ("batch_norm", "running_mean", "running_var")),
    ((_zeros(1, 4), None, None, None, None, True, 0.1, 1e-5), ("batch_norm", "input", "(1, 4)")),
    ((_zeros(4), None, None, None, None, True, 0.1, 1e-5), ("batch_norm", "input", "(4,)")),
)
_LAYER = _errors(
    ((_X, (4,), None, None, 1e-5), ("layer_norm", "input", "4")),
    ((_X, (), None, None, 1e-5), ("layer_norm", "normalized_shape")),
    ((_X, (3,), _zeros(4), None, 1e-5), ("layer_norm", "weight", "4")),
    ((_X, (3,), None, _zeros(1), 1e-5), ("layer_norm", "bias", "1")),
)
_GROUP = _errors(
    ((_X, 3, None, None, 1e-5), ("group_norm", "num_groups", "3", "4")),
    ((_X, 0, None, None, 1e-5), ("group_norm", "num_groups", "0")),
    ((_X, 2, _zeros(2), None, 1e-5), ("group_norm", "weight", "2", "4")),
    ((_zeros(4), 2, None, None, 1e-5), ("group_norm", "input", "(4,)")),
)
_INSTANCE = _errors(((_zeros(4),), ("instance_norm", "input")), ((_X, _zeros(3)), ("weight", "3", "4")))
_ROOT = _errors(((_X, (4,)), ("rms_norm", "input", "4")))


def _record(
    name, reference, samples, errors=(), gradient=_GRAD, namespace="", constant=(), writes=(), dtypes=FLOATS
):
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        gradient,
        constant,
        writes=writes,
        namespace=namespace,
        errors=errors,
        family="norm",
        cancels=True,
        **_TOLERANCE,
    )


RECORDS = [
    _record("batch_norm", _first(batch_norm), batches, _BATCH, constant=(3, 4), writes=(3, 4)),
    _record("batch_norm", _first(batch_norm), evaluated, constant=(3, 4), writes=(3, 4)),
    _record("native_batch_norm", batch_norm, batches, _BATCH, constant=(3, 4), writes=(3, 4)),
    _record("native_batch_norm", batch_norm, evaluated, constant=(3, 4), writes=(3, 4)),
    _record("layer_norm", _first(layer_norm), _short(layers, 2), _LAYER),
    _record("native_layer_norm", layer_norm, layers, _LAYER),
    _record("rms_norm", _rms_norm, _roots, _ROOT, dtypes=FLOATS_AND_COMPLEX),
    _record("group_norm", _first(group_norm), _short(groups_of, 2), _GROUP),
    _record("native_group_norm", group_norm, groups_of, _GROUP),
    _record("instance_norm", _instance_norm, _instances, _INSTANCE),
]
