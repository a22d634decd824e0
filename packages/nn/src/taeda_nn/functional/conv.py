"""Convolutions and padding."""

from __future__ import annotations

from collections.abc import Sequence

from taeda_nn._bind import Tensor, op

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
]

_conv1d = op("conv1d")
_conv2d = op("conv2d")
_conv3d = op("conv3d")
# Where padding has a name: that is no matter of a provider's `conv2d`.
_conv1d_padding = op("_conv1d_padding")
_conv2d_padding = op("_conv2d_padding")
_conv3d_padding = op("_conv3d_padding")
conv_tbc = op("conv_tbc")

Ints = int | Sequence[int]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over one dimension.

    Args:
        input: (N, C, L) or (C, L).
        weight: (out, C / groups, K).
        bias: (out,).
        stride: Step of the window.
        padding: Zeros added on both sides, or 'valid' (none), or 'same' (output as long as the input; stride 1).
        dilation: Distance between the window's elements.
        groups: Number of groups of channels that do not see one another.

    Returns: (N, out, L') or (out, L').

    Example:
        >>> F.conv1d(torch.randn(33, 16, 30), torch.randn(20, 16, 5)).shape
        Size([33, 20, 26])
    """
    if isinstance(padding, str):
        return _conv1d_padding(input, weight, bias, stride, padding, dilation, groups)
    return _conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over two dimensions.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: (out, C / groups, KH, KW).
        bias: (out,).
        stride: Steps of the window.
        padding: Zeros added on both sides, or 'valid' (none), or 'same' (output as large as the input; stride 1).
        dilation: Distances between the window's elements.
        groups: Number of groups of channels that do not see one another.

    Returns: (N, out, H', W') or (out, H', W').

    Example:
        >>> F.conv2d(torch.randn(1, 4, 5, 5), torch.randn(8, 4, 3, 3), padding=1).shape
        Size([1, 8, 5, 5])
    """
    if isinstance(padding, str):
        return _conv2d_padding(input, weight, bias, stride, padding, dilation, groups)
    return _conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over three dimensions.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        weight: (out, C / groups, KD, KH, KW).
        bias: (out,).
        stride: Steps of the window.
        padding: Zeros added on both sides, or 'valid' (none), or 'same' (output as large as the input; stride 1).
        dilation: Distances between the window's elements.
        groups: Number of groups of channels that do not see one another.

    Returns: (N, out, D', H', W') or (out, D', H', W').
    """
    if isinstance(padding, str):
        return _conv3d_padding(input, weight, bias, stride, padding, dilation, groups)
    return _conv3d(input, weight, bias, stride, padding, dilation, groups)


_conv_transpose1d = op("conv_transpose1d")
_conv_transpose2d = op("conv_transpose2d")
_conv_transpose3d = op("conv_transpose3d")


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of ``conv1d`` with respect to its input, as a function of its own.

    Args:
        input: (N, C, L) or (C, L).
        weight: (C, out / groups, K).
        bias: (out,).
        stride: Step of the window in the output.
        padding: Places cut off on both sides of the output.
        output_padding: Places added at one side of the output.
        groups: Number of groups of channels that do not see one another.
        dilation: Distance between the window's elements.
    """
    return _conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of ``conv2d`` with respect to its input, as a function of its own.

    Args:
        input: (N, C, H, W) or (C, H, W).
        weight: (C, out / groups, KH, KW).
        bias: (out,).
        stride: Steps of the window in the output.
        padding: Places cut off on both sides of the output.
        output_padding: Places added at one side of the output.
        groups: Number of groups of channels that do not see one another.
        dilation: Distances between the window's elements.

    Example:
        >>> F.conv_transpose2d(torch.randn(1, 4, 5, 5), torch.randn(4, 8, 3, 3), stride=2).shape
        Size([1, 8, 11, 11])
    """
    return _conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The gradient of ``conv3d`` with respect to its input, as a function of its own.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        weight: (C, out / groups, KD, KH, KW).
        bias: (out,).
        stride: Steps of the window in the output.
        padding: Places cut off on both sides of the output.
        output_padding: Places added at one side of the output.
        groups: Number of groups of channels that do not see one another.
        dilation: Distances between the window's elements.
    """
    return _conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation)


pad = op("pad")
pixel_shuffle = op("pixel_shuffle")
pixel_unshuffle = op("pixel_unshuffle")
