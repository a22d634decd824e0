"""Records of linear layers, convolutions, pooling, normalisation and embedding, written as loops in NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, OpRecord, Sample

_GRAD = ("float64",)
_TOLERANCE = {"rtol": {"float32": 1e-4}, "atol": {"float32": 1e-4}}


def _record(name, reference, samples, namespace="", constant=()):
    return OpRecord(
        name, reference, samples, FLOATS, _GRAD, constant, namespace=namespace, family="layers", **_TOLERANCE
    )


def _normalised(x, axes, eps):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def _batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    shape = (1, -1, *[1] * (x.ndim - 2))
    if training:
        out = _normalised(x, (0, *range(2, x.ndim)), eps)
    else:
        out = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape).astype(np.float64) + eps)
    out = out if weight is None else out * weight.reshape(shape)
    return (out if bias is None else out + bias.reshape(shape)).astype(x.dtype)


def _batches(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4, 3), (3, 2, 5), (2, 3, 4, 5)):
        c = (shape[1],)
        scale, shift, mean = (random_array(rng, c, dtype) for _ in range(3))
        var = random_array(rng, c, dtype, 0.5, 2)
        x = random_array(rng, shape, dtype)
        yield Sample((x, scale, shift, None, None, True, 0.1, 1e-5))
        yield Sample((x, None, None, mean.copy(), var.copy(), True, 0.1, 1e-5))


def _evaluated(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _batches(dtype, rng):
        x, scale, shift = sample.args[:3]
        c = (x.shape[1],)
        mean, var = random_array(rng, c, dtype), random_array(rng, c, dtype, 0.5, 2)
        yield Sample((x, scale, shift, mean, var, False, 0.1, 1e-5))


def _layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    out = _normalised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(x.dtype)


def _rms_norm(x, shape, weight=None, eps=None):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    out = x / np.sqrt((x.astype(np.float64) ** 2).mean(axes, keepdims=True) + eps)
    return (out if weight is None else out * weight).astype(x.dtype)


def _group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    parts = x.reshape(x.shape[0], groups, -1)
    out = _normalised(parts, (2,), eps).reshape(x.shape)
    shape = (1, -1, *[1] * (x.ndim - 2))
    out = out if weight is None else out * weight.reshape(shape)
    return (out if bias is None else out + bias.reshape(shape)).astype(x.dtype)


def _layers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, last in (((5,), (5,)), ((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((40, 33), (33,))):
        x = random_array(rng, shape, dtype)
        yield Sample((x, last))
        yield Sample((x, last, random_array(rng, last, dtype), random_array(rng, last, dtype), 1e-3))


def _groups(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, groups in (((2, 4), 2), ((2, 6, 3), 3), ((1, 4, 3, 2), 1)):
        x, c = random_array(rng, shape, dtype), (shape[1],)
        yield Sample((x, groups))
        yield Sample((x, groups, random_array(rng, c, dtype), random_array(rng, c, dtype), 1e-3))


def _linear(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for x, w in (
        ((3, 4), (5, 4)),
        ((4,), (2, 4)),
        ((2, 3, 4), (1, 4)),
        ((0, 4), (2, 4)),
        ((33, 70), (40, 70)),
    ):
        for bias in (None, random_array(rng, (w[0],), dtype)):
            yield Sample((random_array(rng, x, dtype), random_array(rng, w, dtype), bias))


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for size in ((5,), (2, 3), (), (0,)):
        yield Sample((random_array(rng, (7, 4), dtype), rng.integers(0, 7, size)))


def _padded_rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """The padded row is looked up like any other and gets no gradient."""
    for padding in (1, 0):
        table, rows = random_array(rng, (4, 3), dtype), np.array([[1, 2, 0], [3, 1, 1]])
        cut = np.zeros((4, 3), bool)
        cut[padding] = True
        yield Sample((table, rows, padding), cut={0: cut})


RECORDS = [
    _record("batch_norm", _batch_norm, _batches, constant=(3, 4)),
    _record("batch_norm", _batch_norm, _evaluated, constant=(3, 4)),
    _record("layer_norm", _layer_norm, _layers),
    _record("rms_norm", _rms_norm, lambda dtype, rng: (Sample(s.args[:3]) for s in _layers(dtype, rng))),
    _record("group_norm", _group_norm, _groups),
    _record(
        "linear",
        lambda x, w, b: np.asarray(x.astype(np.float64) @ w.T + (0 if b is None else b)).astype(x.dtype),
        _linear,
        "ops",
    ),
    _record("embedding", lambda w, i: w[i], _rows),
    _record("embedding", lambda w, i, padding: w[i], _padded_rows),
]
