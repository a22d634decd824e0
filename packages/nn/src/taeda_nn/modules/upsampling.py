"""Layers that give images another size."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """The input with other sizes of its last dimensions; arguments as ``functional.interpolate``.

    Args:
        size: Sizes of the result behind the channels.
        scale_factor: What the input's sizes are multiplied by, in place of ``size``.
        mode: 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'.
        align_corners: Whether the centres of the elements at the corners stay in place.
        recompute_scale_factor: Whether positions follow from the sizes, not from ``scale_factor``.

    Example:
        >>> nn.Upsample(scale_factor=2)(torch.randn(1, 3, 8, 8)).shape
        Size([1, 3, 16, 16])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)  # what old pickles were written with
        super().__setstate__(state)

    def extra_repr(self) -> str:
        shown = "scale_factor" if self.scale_factor is not None else "size"
        return f"{shown}={getattr(self, shown)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Deprecated: `Upsample` with mode 'nearest'."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Deprecated: `Upsample` with mode 'bilinear' and aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
