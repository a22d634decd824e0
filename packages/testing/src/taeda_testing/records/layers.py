"""Records of linear layers, convolutions, pooling, normalisation and embedding, written as loops in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, OpRecord, Sample

_GRAD = ("float64",)
_TOLERANCE = {"rtol": {"float32": 1e-4}, "atol": {"float32": 1e-4}}


def _record(name, reference, samples, namespace="", constant=()):
    return OpRecord(
        name, reference, samples, FLOATS, _GRAD, constant, namespace=namespace, family="layers", **_TOLERANCE
    )


def _several(n: int, value: Any) -> tuple[int, ...]:
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return items * n if len(items) == 1 else items


def _conv(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = x.ndim - 2
    stride, padding, dilation = _several(n, stride), _several(n, padding), _several(n, dilation)
    x64 = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *((p, p) for p in padding)))
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    sizes = [(s - r) // t + 1 for s, r, t in zip(x64.shape[2:], reach, stride, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    inner, outer = x.shape[1] // groups, w.shape[0] // groups
    for at in itertools.product(*map(range, sizes)):
        window = tuple(
            slice(a * t, a * t + r, d) for a, t, r, d in zip(at, stride, reach, dilation, strict=True)
        )
        for g in range(groups):
            part = x64[(slice(None), slice(g * inner, (g + 1) * inner), *window)]
            kernels = w[g * outer : (g + 1) * outer].astype(np.float64)
            out[(slice(None), slice(g * outer, (g + 1) * outer), *at)] = np.tensordot(
                part, kernels, (range(1, n + 2), range(1, n + 2))
            )
    if bias is not None:
        out += bias.reshape(1, -1, *[1] * n)
    return out.astype(x.dtype)


_CONV2D = [
    ((1, 1, 4, 4), (1, 1, 3, 3), False, {}),
    ((2, 3, 6, 5), (4, 3, 3, 2), True, {"stride": (2, 1), "padding": (1, 0)}),
    ((2, 4, 7, 7), (6, 2, 3, 3), True, {"padding": 1, "groups": 2}),
    ((1, 4, 7, 6), (4, 1, 3, 3), True, {"padding": (2, 1), "dilation": 2, "groups": 4}),
    ((2, 5, 3, 3), (2, 5, 1, 1), True, {}),
]
_CONV1D = [
    ((1, 1, 5), (1, 1, 3), False, {}),
    ((2, 4, 8), (6, 2, 3), True, {"stride": 2, "padding": 1, "groups": 2}),
    ((2, 2, 9), (3, 2, 3), True, {"dilation": 2}),
]


def _convs(calls):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for x, w, bias, options in calls:
            given = random_array(rng, (w[0],), dtype) if bias else None
            yield Sample((random_array(rng, x, dtype), random_array(rng, w, dtype), given), dict(options))

    return samples


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
    _record("conv1d", _conv, _convs(_CONV1D)),
    _record("conv2d", _conv, _convs(_CONV2D)),
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
