"""Dropout layers; they do nothing in evaluation."""

from __future__ import annotations

from collections.abc import Callable

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, op
from taeda_nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]

_dropout = op("dropout")


class _DropoutNd(Module):
    """What the dropout layers share, whatever they drop."""

    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p must lie between 0 and 1, got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """While training, zeroes each element with probability ``p`` and divides the others by ``1 - p``.

    Source: Srivastava et al., "Dropout", 2014.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return input
        return F.dropout(input, self.p, True, True) if self.inplace else _dropout(input, self.p, True)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (N, C, H, W).

    Source: Tompson et al., "Efficient Object Localization Using Convolutional Networks", 2015.
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W)."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout for SELU networks: keeps mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels."""

    _function = staticmethod(F.feature_alpha_dropout)
