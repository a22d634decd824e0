"""Convolution layers, and those that take the number of input channels from their first input."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, op, tensor
from taeda_nn.common_types import _size_1_t, _size_2_t, _size_3_t  # noqa: F401 (programs import them)
from taeda_nn.modules._state import attributes
from taeda_nn.modules.lazy import LazyModuleMixin
from taeda_nn.modules.module import Module
from taeda_nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple  # noqa: F401 (programs import it)
from taeda_nn.parameter import Parameter, UninitializedParameter, is_lazy

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

# The operators are called in the functions' places while nobody has put others there.
_f_conv1d, _conv1d = F.conv1d, op("conv1d")
_f_conv2d, _conv2d = F.conv2d, op("conv2d")
_f_conv3d, _conv3d = F.conv3d, op("conv3d")
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvForward:
    """The method that a convolution calls unless its operator can be called at once.

    Programs define it anew in derived classes, and put functions of their own in its place in single layers.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, layer: Any, owner: type | None = None) -> Callable[..., Tensor]:
        if layer is None:
            return self.function
        return attributes(layer).get("_conv_forward") or MethodType(self.function, layer)

    def __set__(self, layer: Any, function: Callable[..., Tensor]) -> None:
        layer._plain = False
        attributes(layer)["_conv_forward"] = function

    def __delete__(self, layer: Any) -> None:
        del attributes(layer)["_conv_forward"]
        layer._plain = layer._is_plain()


class _ConvNd(Module):
    """What the convolution layers share: settings, weight and bias."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    transposed = False
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0:
            raise ValueError(f"{name}: groups must be positive, got {groups}")
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: in_channels ({in_channels}) and out_channels ({out_channels}) must be divisible by "
                f"groups ({groups})"
            )
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(f"{name}: padding must be numbers, 'valid' or 'same', got {padding!r}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError(f"{name}: padding='same' needs stride 1, got {stride}")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"{name}: padding_mode must be one of {_PADDING_MODES}, got {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.output_padding = (0,) * len(kernel_size)
        self.groups = groups
        self.padding_mode = padding_mode
        self._plain = self._is_plain()
        channels = (
            (in_channels, out_channels // groups)
            if self.transposed
            else (out_channels, in_channels // groups)
        )
        shape = (*channels, *kernel_size)
        self.weight = Parameter(tensor.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(tensor.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _is_plain(self) -> bool:
        """Whether the layer is one call of the operator, which can do the padding."""
        ours = getattr(type(self), "_conv_forward", None)
        if getattr(ours, "__globals__", None) is not globals() or "_conv_forward" in attributes(self):
            return False
        return self.padding_mode == "zeros" and not isinstance(self.padding, str)

    def __getstate__(self) -> dict[str, Any]:
        own = {
            "transposed": self.transposed,
            "_reversed_padding_repeated_twice": self._reversed_padding_repeated_twice,
        }
        return {**super().__getstate__(), **own}  # PyTorch's layers keep these

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._plain = self._is_plain()  # a state of PyTorch's does not say
        amounts = state.get("_reversed_padding_repeated_twice")
        if amounts is not None and list(amounts) != self._amounts():
            self._reversed_padding_repeated_twice = amounts

    def reset_parameters(self) -> None:
        """Draws new initial values: uniform within 1 / sqrt(inputs of one output)."""
        if 0 in self.weight.shape:
            init.warn_of_nothing(stacklevel=3)
        fan_in = math.prod(self.weight.shape[1:])
        if fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.weight, -bound, bound)
            if self.bias is not None:
                init.uniform_(self.bias, -bound, bound)

    def _amounts(self) -> list[int]:
        """Places added on each side, the last dimension first."""
        if self.padding == "same":
            from taeda_nn._decompose.conv import same_padding

            ends = reversed(same_padding(self.kernel_size, self.dilation))
            return [places for end in ends for places in end]
        if self.padding == "valid":
            return [0] * (2 * len(self.kernel_size))
        return [amount for amount in reversed(self.padding) for _side in range(2)]

    @property
    def _reversed_padding_repeated_twice(self) -> Sequence[int]:
        """What derived layers give `functional.pad`: the layer's own amounts, or those that were assigned."""
        assigned = attributes(self).get("_reversed_padding_repeated_twice")
        if assigned is not None:
            return assigned
        return self._amounts() if isinstance(self.padding, str) else tuple(self._amounts())

    @_reversed_padding_repeated_twice.setter
    def _reversed_padding_repeated_twice(self, amounts: Sequence[int]) -> None:
        attributes(self)["_reversed_padding_repeated_twice"] = amounts

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input padded in the layer's mode, and what remains for the operator to pad."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), (0,) * len(
            self.kernel_size
        )

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        rank = len(self.kernel_size)
        if self.padding != (0,) * rank:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * rank:
            parts.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _next_init(module: Any) -> Any:
    """The next ``__init__`` in the order of the module's classes, behind the class that gives the dimensions: several
    share an ``__init__``, and programs put others in its place."""
    owner = next(cls for cls in type(module).__mro__ if "_sizes" in vars(cls))
    return super(owner, module).__init__


def _init_conv(
    self: Any,
    in_channels: int,
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
    """Of convolutions, of as many dimensions as their ``_sizes`` gives numbers."""
    padding = padding if isinstance(padding, str) else self._sizes(padding)
    settings = self._sizes(kernel_size), self._sizes(stride), padding, self._sizes(dilation)
    init = _next_init(self)
    init(in_channels, out_channels, *settings, groups, bias, padding_mode, device, dtype)


class Conv1d(_ConvNd):
    """Cross-correlation over one dimension: (N, C, L) to (N, out, L').

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Length of the window.
        stride: Step of the window.
        padding: Places added on both sides, or 'valid' (none), or 'same' (output as long as the input).
        dilation: Distance between the window's elements.
        groups: Number of groups of channels that do not see one another.
        bias: Whether a shift per output channel is learned.
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.

    Example:
        >>> nn.Conv1d(16, 33, 3, stride=2)(torch.randn(20, 16, 50)).shape
        Size([20, 33, 24])
    """

    _sizes = staticmethod(_single)
    __init__ = _init_conv

    def forward(self, input: Tensor) -> Tensor:
        if self._plain and F.conv1d is _f_conv1d:
            return _conv1d(
                input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )
        return self._conv_forward(input, self.weight, self.bias)

    @_ConvForward
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What the layer computes with another weight and bias; derived classes define it anew."""
        input, padding = self._padded(input)
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_ConvNd):
    """Cross-correlation over two dimensions: (N, C, H, W) to (N, out, H', W').

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window, one number or (height, width); likewise the next three.
        stride: Steps of the window.
        padding: Places added on both sides, or 'valid' (none), or 'same' (output as large as the input).
        dilation: Distances between the window's elements.
        groups: Number of groups of channels that do not see one another.
        bias: Whether a shift per output channel is learned.
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.

    Attributes:
        weight: (out, in / groups, height, width).
        bias: (out,).

    Example:
        >>> nn.Conv2d(16, 33, 3, stride=2)(torch.randn(20, 16, 50, 100)).shape
        Size([20, 33, 24, 49])
    """

    _sizes = staticmethod(_pair)
    __init__ = _init_conv

    def forward(self, input: Tensor) -> Tensor:
        if self._plain and F.conv2d is _f_conv2d:
            return _conv2d(
                input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )
        return self._conv_forward(input, self.weight, self.bias)

    @_ConvForward
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What the layer computes with another weight and bias; derived classes define it anew."""
        input, padding = self._padded(input)
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_ConvNd):
    """Cross-correlation over three dimensions: (N, C, D, H, W) to (N, out, D', H', W').

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window, one number or (depth, height, width); likewise the next three.
        stride: Steps of the window.
        padding: Places added on both sides, or 'valid' (none), or 'same' (output as large as the input).
        dilation: Distances between the window's elements.
        groups: Number of groups of channels that do not see one another.
        bias: Whether a shift per output channel is learned.
        padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.

    Attributes:
        weight: (out, in / groups, depth, height, width).
        bias: (out,).

    Example:
        >>> nn.Conv3d(16, 33, 3, stride=2)(torch.randn(2, 16, 10, 20, 30)).shape
        Size([2, 33, 4, 9, 14])
    """

    _sizes = staticmethod(_triple)
    __init__ = _init_conv

    def forward(self, input: Tensor) -> Tensor:
        if self._plain and F.conv3d is _f_conv3d:
            return _conv3d(
                input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )
        return self._conv_forward(input, self.weight, self.bias)

    @_ConvForward
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What the layer computes with another weight and bias; derived classes define it anew."""
        input, padding = self._padded(input)
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """What the transposed convolutions share: the output padding that gives a wanted size."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        dilation: tuple[int, ...],
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode must be 'zeros', got {padding_mode!r}")
        settings = stride, padding, dilation, groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, kernel_size, *settings)
        self.output_padding = output_padding

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any = None,
        padding: Any = None,
        kernel_size: Any = None,
        num_spatial_dims: int | None = None,
        dilation: Any = None,
    ) -> tuple[int, ...]:
        """What is to be added to the least output for it to have ``output_size``; other settings are the layer's."""
        if output_size is None:
            return self.output_padding
        stride, padding = stride or self.stride, padding or self.padding
        kernel_size, dilation = kernel_size or self.kernel_size, dilation or self.dilation
        rank = num_spatial_dims or len(kernel_size)
        wanted = tuple(output_size)[-rank:]
        extra = []
        for i, size in enumerate(wanted):
            reach = dilation[i] * (kernel_size[i] - 1) + 1
            least = (input.shape[i - rank] - 1) * stride[i] - 2 * padding[i] + reach
            if not least <= size < least + stride[i]:
                raise ValueError(
                    f"{type(self).__name__}: output_size {wanted} is out of reach: dimension {i - rank} can be "
                    f"{least} to {least + stride[i] - 1}"
                )
            extra.append(size - least)
        return tuple(extra)


class _ConvTransposeMixin(_ConvTransposeNd):
    """Deprecated name of `_ConvTransposeNd`, which libraries import."""


def _init_conv_transpose(
    self: Any,
    in_channels: int,
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
    """Of transposed convolutions, of as many dimensions as their ``_sizes`` gives numbers."""
    sizes = (
        self._sizes(kernel_size),
        self._sizes(stride),
        self._sizes(padding),
        self._sizes(output_padding),
    )
    settings = groups, bias, self._sizes(dilation), padding_mode, device, dtype
    _next_init(self)(in_channels, out_channels, *sizes, *settings)


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of ``Conv1d`` with respect to its input, as a layer: (N, C, L) to (N, out, L').

    Example:
        >>> nn.ConvTranspose1d(16, 33, 3, stride=2)(torch.randn(20, 16, 50)).shape
        Size([20, 33, 101])
    """

    _sizes = staticmethod(_single)
    __init__ = _init_conv_transpose

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        settings = self.stride, self.padding, extra, self.groups, self.dilation
        return F.conv_transpose1d(input, self.weight, self.bias, *settings)


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of ``Conv2d`` with respect to its input, as a layer: (N, C, H, W) to (N, out, H', W').

    Example:
        >>> nn.ConvTranspose2d(16, 33, 3, stride=2)(torch.randn(2, 16, 10, 12)).shape
        Size([2, 33, 21, 25])
    """

    _sizes = staticmethod(_pair)
    __init__ = _init_conv_transpose

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        settings = self.stride, self.padding, extra, self.groups, self.dilation
        return F.conv_transpose2d(input, self.weight, self.bias, *settings)


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of ``Conv3d`` with respect to its input, as a layer: (N, C, D, H, W) to (N, out, D', H', W').

    Example:
        >>> nn.ConvTranspose3d(4, 6, 3, stride=2)(torch.randn(2, 4, 5, 6, 7)).shape
        Size([2, 6, 11, 13, 15])
    """

    _sizes = staticmethod(_triple)
    __init__ = _init_conv_transpose

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        settings = self.stride, self.padding, extra, self.groups, self.dilation
        return F.conv_transpose3d(input, self.weight, self.bias, *settings)


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
    """`Conv2d` whose ``in_channels`` are those of its first input; arguments as there.

    Example:
        >>> nn.LazyConv2d(8, 3)(torch.randn(2, 3, 10, 10)).shape
        Size([2, 8, 8, 8])
    """

    cls_to_become = Conv2d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """`ConvTranspose1d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """`ConvTranspose2d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = ConvTranspose2d


class LazyConv3d(_LazyConv, Conv3d):  # type: ignore[misc]
    """`Conv3d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = Conv3d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):  # type: ignore[misc]
    """`ConvTranspose3d` whose ``in_channels`` are those of its first input; arguments as there."""

    cls_to_become = ConvTranspose3d
