"""Padding layers."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ZeroPad1d",
    "ZeroPad2d",
]


class _PadNd(Module):
    """Pads the last ``rank`` dimensions at both ends in one mode."""

    rank = 0
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.rank) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with ``value``."""

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with ``value``."""

    rank = 2


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    """Pads the last dimension with zeros."""

    rank = 1


class ZeroPad2d(_ZeroPadNd):
    """Pads the last two dimensions with zeros."""

    rank = 2


class ReflectionPad1d(_PadNd):
    """Pads the last dimension by reflection at its ends."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pads the last two dimensions by reflection at their ends."""

    rank, mode = 2, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dimension by repeating its ends."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dimensions by repeating their ends."""

    rank, mode = 2, "replicate"


class CircularPad1d(_PadNd):
    """Pads the last dimension with its other end."""

    rank, mode = 1, "circular"


class CircularPad2d(_PadNd):
    """Pads the last two dimensions with their other ends."""

    rank, mode = 2, "circular"
