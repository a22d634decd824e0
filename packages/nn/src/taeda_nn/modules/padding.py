"""Padding layers."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module
from taeda_nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    """Pads the last ``rank`` dimensions at both ends in one mode."""

    rank = 0
    mode = "constant"
    value: float | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with ``value``.

    Example:
        >>> nn.ConstantPad1d((1, 2), 7.0)(torch.tensor([[1.0, 2.0]]))
        tensor([[7., 1., 2., 7., 7.]])
    """

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with ``value``."""

    __constants__ = ["padding", "value"]

    rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with ``value``."""

    rank = 3


class _WithZeros:
    """Before a ``ConstantPad``: the one whose value is 0."""

    padding: Any

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_WithZeros, ConstantPad1d):  # type: ignore[misc]
    """Pads the last dimension with zeros."""


class ZeroPad2d(_WithZeros, ConstantPad2d):  # type: ignore[misc]
    """Pads the last two dimensions with zeros.

    Example:
        >>> nn.ZeroPad2d(1)(torch.ones(1, 1, 1))
        tensor([[[0., 0., 0.],
                 [0., 1., 0.],
                 [0., 0., 0.]]])
    """


class ZeroPad3d(_WithZeros, ConstantPad3d):  # type: ignore[misc]
    """Pads the last three dimensions with zeros."""


class _ReflectionPadNd(_PadNd):
    __constants__ = ["padding"]
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension by reflection at its ends.

    Example:
        >>> nn.ReflectionPad1d(2)(torch.tensor([[0.0, 1.0, 2.0, 3.0]]))
        tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
    """

    rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions by reflection at their ends."""

    rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions by reflection at their ends."""

    rank = 3


class _ReplicationPadNd(_PadNd):
    __constants__ = ["padding"]
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension by repeating its ends.

    Example:
        >>> nn.ReplicationPad1d(2)(torch.tensor([[1.0, 2.0]]))
        tensor([[1., 1., 1., 2., 2., 2.]])
    """

    rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions by repeating their ends."""

    rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions by repeating their ends."""

    rank = 3


class _CircularPadNd(_PadNd):
    __constants__ = ["padding"]
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self.rank + 1, self.rank + 2):
            raise ValueError(
                f"{type(self).__name__}: expected {self.rank + 1}D or {self.rank + 2}D input "
                f"(got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with its other end."""

    rank = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their other ends."""

    rank = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their other ends."""

    rank = 3
