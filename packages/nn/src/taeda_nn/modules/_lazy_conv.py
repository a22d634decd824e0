"""Convolutions that take the number of input channels from their first input."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.modules import conv as _layers
from taeda_nn.modules.conv import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from taeda_nn.modules.lazy import LazyModuleMixin
from taeda_nn.parameter import UninitializedParameter, is_lazy

__all__ = ["LazyConv1d", "LazyConv2d", "LazyConvTranspose1d", "LazyConvTranspose2d"]


class _LazyConvXdMixin(LazyModuleMixin):
    """What the lazy convolutions share; it stands before the class that an instance becomes."""

    weight: Any
    bias: Any
    in_channels: int
    out_channels: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws new initial values, once there are parameters."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Takes ``in_channels`` from the input."""
        if self.has_uninitialized_params():
            channels = self._get_in_channels(input)
            if channels % self.groups:
                raise ValueError(
                    f"{type(self).__name__}: in_channels ({channels}) must be divisible by groups ({self.groups})"
                )
            self.in_channels = channels
            given, made = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
            if is_lazy(self.weight):
                self.weight.materialize((given, made // self.groups, *self.kernel_size))
            if is_lazy(self.bias):
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        if self.in_channels == 0:  # a state was loaded before
            self.in_channels = self._get_in_channels(input)

    def _get_in_channels(self, input: Tensor) -> int:
        spatial = self._get_num_spatial_dims()
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(
                f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {tuple(input.shape)}"
            )
        return input.shape[-spatial - 1]

    def _get_num_spatial_dims(self) -> int:
        return len(self.kernel_size)


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):  # type: ignore[misc]
    """`Conv1d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):  # type: ignore[misc]
    """`Conv2d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = Conv2d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """`ConvTranspose1d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """`ConvTranspose2d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = ConvTranspose2d


if hasattr(_layers, "Conv3d"):  # layers over volumes

    class LazyConv3d(_LazyConv, _layers.Conv3d):  # type: ignore[misc, name-defined]
        """`Conv3d` whose ``in_channels`` are those of its first input; arguments as there."""

        cls_to_become = _layers.Conv3d

    class LazyConvTranspose3d(_LazyConvTranspose, _layers.ConvTranspose3d):  # type: ignore[misc, name-defined]
        """`ConvTranspose3d` whose ``in_channels`` are those of its first input; arguments as there."""

        cls_to_become = _layers.ConvTranspose3d

    __all__ += ["LazyConv3d", "LazyConvTranspose3d"]
