"""Records of the gradients of normalisation, given the statistics of the forward call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import ErrorSample, OpRecord, Sample
from taeda_testing.records.norm import (
    batch_norm,
    batches,
    channels,
    evaluated,
    group_norm,
    grouped,
    groups_of,
    layer_norm,
    layers,
    scaled,
    trailing,
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


def _record(name: str, reference: Any, samples: Any, *wrong: tuple[Any, ...]) -> OpRecord:
    near = {"float32": 1e-4}
    kinds = (RuntimeError, ValueError)
    errors = tuple(ErrorSample(args, {}, kinds, (name, *words)) for args, words in wrong)
    return OpRecord(
        name,
        reference,
        samples,
        gradient=("float64",),
        namespace="ops",
        rtol=near,
        atol=near,
        errors=errors,
        family="norm",
        cancels=True,
    )


_X, _ONE = np.zeros((2, 4), np.float32), np.zeros((1, 1), np.float32)


RECORDS = [
    _record(
        "batch_norm_backward",
        _batch_norm_backward,
        _batch_gradients,
        ((_X, _X, None, _ONE[0], _ONE[0], True), ("save_mean",)),
        ((_X[:1], _X, None, _X[0], _X[0], True), ("grad",)),
    ),
    _record(
        "layer_norm_backward",
        _layer_norm_backward,
        _gradients(layer_norm, layers),
        ((_X, _X, (4,), _ONE, _ONE, None), ("mean",)),
    ),
    _record(
        "group_norm_backward",
        _group_norm_backward,
        _gradients(group_norm, groups_of),
        ((_X, _X, 2, _ONE, _ONE, None), ("mean",)),
    ),
]
