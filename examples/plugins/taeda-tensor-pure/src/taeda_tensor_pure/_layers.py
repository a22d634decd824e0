"""Functions of neural networks on arrays: windows, normalisation, softmax, embedding, losses of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taeda_tensor_pure._tensor import lifted

Array = np.ndarray
Ints = int | Sequence[int]


def _several(value: Ints, n: int) -> tuple[int, ...]:
    items = (value,) if isinstance(value, int) else tuple(value)
    return items * n if len(items) == 1 else items


def _windows(
    x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, fill: float, n: int
) -> Array:
    """Windows over the last n dimensions, as (..., places, kernel)."""
    kernel, stride, padding, dilation = (_several(v, n) for v in (kernel, stride, padding, dilation))
    wide = np.pad(x, [*[(0, 0)] * (x.ndim - n), *((p, p) for p in padding)], constant_values=fill)
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    found = np.lib.stride_tricks.sliding_window_view(wide, reach, tuple(range(-n, 0)))
    return found[(..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def _conv(n: int) -> Callable[..., Array]:
    def call(
        x: Array,
        w: Array,
        bias: Any = None,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Array:
        if x.ndim == n + 1:
            return call(x[None], w, bias, stride, padding, dilation, groups)[0]
        if x.shape[1] != w.shape[1] * groups:
            raise ValueError(f"{x.shape[1]} channels, expected {w.shape[1]} for each of {groups} groups")
        windows = _windows(x, w.shape[2:], stride, padding, dilation, 0, n)
        axes = ([1, *range(windows.ndim - n, windows.ndim)], range(1, n + 2))
        parts = zip(np.split(windows, groups, 1), np.split(w, groups), strict=True)
        out = np.moveaxis(np.concatenate([np.tensordot(*part, axes) for part in parts], -1), -1, 1)
        return np.ascontiguousarray(out if bias is None else out + bias.reshape(-1, *[1] * n))

    return call


def _pool(n: int, function: Callable[..., Array], fill: float) -> Callable[..., Array]:
    def call(x: Array, kernel: Ints, stride: Any = None, padding: Ints = 0, *more: Any) -> Array:
        # Further arguments: dilation and ceil_mode of maxima; ceil_mode and how padding counts of means.
        dilation, *rest = more if function is np.max and more else (1, *more)
        if rest and rest[0]:
            raise NotImplementedError("pooling: ceil_mode is not there")
        windows = _windows(x, kernel, stride or kernel, padding, dilation, fill, n)
        return function(windows, axis=tuple(range(-n, 0)))

    return call


def _adaptive(x: Array, size: Ints) -> Array:
    rows, columns = (
        [slice(i * n // k, -(-(i + 1) * n // k)) for i in range(k)]
        for n, k in zip(x.shape[-2:], _several(size, 2), strict=True)
    )
    return np.stack([np.stack([x[..., r, c].mean((-2, -1)) for c in columns], -1) for r in rows], -2)


def _linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    return x @ weight.T if bias is None else x @ weight.T + bias


def _log_softmax(x: Array, dim: int, dtype: Any = None) -> Array:
    x = x if dtype is None else x.astype(dtype.numpy)
    x = x - x.max(dim, keepdims=True)
    return x - np.log(np.exp(x).sum(dim, keepdims=True))


def _affine(x: Array, weight: Any, bias: Any, shape: Sequence[int], kind: np.dtype) -> Array:
    x = x if weight is None else x * weight.reshape(shape)
    return (x if bias is None else x + bias.reshape(shape)).astype(kind, copy=False)


def _layer_norm(x: Array, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Array:
    axes = tuple(range(-len(shape), 0))
    if x.shape[-len(axes) :] != tuple(shape):
        raise ValueError(f"the input does not end with {tuple(shape)}")
    normal = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return _affine(normal, weight, bias, shape, x.dtype)


def _batch_norm(
    x: Array,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> Array:
    """The running statistics are updated in place while training."""
    axes, shape = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    if training or mean is None:
        running, (mean, var) = (mean, var), (x.mean(axes), x.var(axes))
        if running[0] is not None:
            n = x.size // x.shape[1]
            for old, new in zip(running, (mean, var * n / max(n - 1, 1)), strict=True):
                old[...] = (1 - momentum) * old + momentum * new
    return _affine(
        (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps), weight, bias, shape, x.dtype
    )


def _nll(x: Array, target: Array, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Array:
    rows = np.moveaxis(x, 1 if x.ndim > 1 else 0, -1)
    if rows.shape[:-1] != target.shape:
        raise ValueError(f"target {target.shape} does not fit input {x.shape}")
    counted = target != ignore_index
    places = np.where(counted, target, 0)
    scale = counted * (np.ones(rows.shape[-1], x.dtype) if weight is None else weight)[places]
    picked = (-np.take_along_axis(rows, places[..., None], -1)[..., 0] * scale).astype(x.dtype)
    return picked if reduction == 0 else picked.sum() / (scale.sum() if reduction == 1 else x.dtype.type(1))


def _cross_entropy(
    x: Array, target: Array, weight: Any, reduction: int, ignore: int, smoothing: float
) -> Array:
    if smoothing or target.dtype.kind == "f":
        raise NotImplementedError("cross_entropy_loss: label smoothing and class probabilities are not there")
    return _nll(_log_softmax(x, 1 if x.ndim > 1 else 0), target, weight, reduction, ignore)


LAYERS = {
    name: lifted(name, function)
    for name, function in {
        "conv1d": _conv(1), "conv2d": _conv(2), "adaptive_avg_pool2d": _adaptive,
        "max_pool1d": _pool(1, np.max, -np.inf), "max_pool2d": _pool(2, np.max, -np.inf),
        "avg_pool1d": _pool(1, np.mean, 0), "avg_pool2d": _pool(2, np.mean, 0),
        "adaptive_avg_pool1d": lambda x, size: _adaptive(x[..., None, :], (1, *_several(size, 1)))[..., 0, :],
        "linear": _linear, "embedding": lambda weight, indices, *_, **more: weight[indices],
        "log_softmax": _log_softmax, "softmax": lambda x, dim, dtype=None: np.exp(_log_softmax(x, dim, dtype)),
        "layer_norm": _layer_norm, "batch_norm": _batch_norm, "nll_loss": _nll, "cross_entropy_loss": _cross_entropy,
    }.items()
}  # fmt: skip
