"""Dropout and its relatives."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, op, tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

_dropout = op("dropout")


def _check(name: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: p must lie between 0 and 1, got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zeroes each element with probability ``p`` and divides the others by ``1 - p``.

    Source: Srivastava et al., "Dropout", 2014.
    """
    if not 0.0 <= p <= 1.0:
        _check("dropout", p)
    if not training:
        return input
    result = _dropout(input, p, True)
    return input.copy_(result) if inplace else result


def _kept(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    return (tensor.rand(shape, device=like.device) >= p).to(dtype=like.dtype)


def _channelwise(name: str, input: Tensor, p: float, training: bool, inplace: bool, batched: int) -> Tensor:
    _check(name, p)
    if not training or p == 0:
        return input
    lead = 2 if input.dim() >= batched else 1
    mask = _kept(input, tuple(input.shape[:lead]) + (1,) * (input.dim() - lead), p)
    mask = mask * 0 if p == 1 else mask / (1 - p)
    return input.mul_(mask) if inplace else input * mask


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: input must have 2 or 3 dimensions, got shape {tuple(input.shape)}")
    return _channelwise("dropout1d", input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels: dimension 1 of (N, C, H, W); of (N, C, L) too."""
    if input.dim() < 2:
        raise RuntimeError(
            f"dropout2d: input must have at least 2 dimensions, got shape {tuple(input.shape)}"
        )
    return _channelwise("dropout2d", input, p, training, inplace, 3)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _channelwise("dropout3d", input, p, training, inplace, 5)


_ALPHA = -1.7580993408473766  # the value that SELU approaches at minus infinity


def _alpha(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]
) -> Tensor:
    _check(name, p)
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    kept = _kept(input, shape, p)
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    result = (input * kept + _ALPHA * (1 - kept)) * a - a * _ALPHA * p
    return input.copy_(result) if inplace else result


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for SELU networks: keeps mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return _alpha("alpha_dropout", input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels."""
    shape = tuple(input.shape[:2]) + (1,) * (input.dim() - 2)
    return _alpha("feature_alpha_dropout", input, p, training, inplace, shape)
