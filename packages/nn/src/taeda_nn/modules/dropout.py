"""Dropout layers; they do nothing in evaluation."""

from __future__ import annotations

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

# Called in its place while nobody has put another there.
_f_dropout, _dropout = F.dropout, op("dropout")


class _DropoutNd(Module):
    """What the dropout layers share, whatever they drop."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """While training, zeroes each element with probability ``p`` and divides the others by ``1 - p``.

    Example:
        >>> nn.Dropout(0.5).eval()(torch.ones(3))
        tensor([1., 1., 1.])

    Source: Srivastava et al., "Dropout", 2014.
    """

    def forward(self, input: Tensor) -> Tensor:
        if F.dropout is not _f_dropout:
            return F.dropout(input, self.p, self.training, self.inplace)
        if not self.training:
            return input
        return F.dropout(input, self.p, True, True) if self.inplace else _dropout(input, self.p, True)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (N, C, H, W).

    Example:
        >>> nn.Dropout2d(0.2)(torch.randn(20, 16, 32, 32)).shape
        Size([20, 16, 32, 32])

    Source: Tompson et al., "Efficient Object Localization Using Convolutional Networks", 2015.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for SELU networks: keeps mean 0 and variance 1.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
