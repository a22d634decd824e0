"""Dropouts other than the plain one, which every provider has."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, tensor

__all__ = ["alpha_dropout", "feature_alpha_dropout", "feature_dropout"]

_LOWEST = -1.7580993408473766  # the value that SELU approaches at minus infinity


def _kept(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    return (tensor.rand(shape, device=like.device) >= p).to(dtype=like.dtype)


def _by_feature(input: Tensor) -> tuple[int, ...]:
    return tuple(input.shape[:2]) + (1,) * (input.dim() - 2)


def _keeping_moments(input: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    if p == 1:
        return input * 0
    kept = _kept(input, shape, p)
    a = 1.0 / math.sqrt((_LOWEST * _LOWEST * p + 1) * (1 - p))
    return input * (kept * a) + ((1 - kept) * (_LOWEST * a) - _LOWEST * a * p)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0:
        return input
    kept = _kept(input, _by_feature(input), p)
    return input * (kept * 0 if p == 1 else kept / (1 - p))


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return _keeping_moments(input, tuple(input.shape), p) if train and p else input


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return _keeping_moments(input, _by_feature(input), p) if train and p else input
