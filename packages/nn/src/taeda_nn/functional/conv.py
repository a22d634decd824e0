"""Convolutions and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor, op, tensor
from taeda_nn._errors import not_tensors

__all__ = [
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
]

_conv1d = op("conv1d")
_conv2d = op("conv2d")

Ints = int | Sequence[int]


def _padding_by_name(
    name: str, input: Tensor, weight: Tensor, stride: Any, padding: str, dilation: Any
) -> tuple[Tensor, tuple[int, ...]]:
    """Turns 'valid' and 'same' into numbers; an odd total for 'same' pads the input by one at the end."""
    rank = weight.dim() - 2
    if padding == "valid":
        return input, (0,) * rank
    if padding != "same":
        raise RuntimeError(f"{name}: padding must be numbers, 'valid' or 'same', got {padding!r}")
    strides = (stride,) * rank if isinstance(stride, int) else tuple(stride)
    if any(step != 1 for step in strides):
        raise RuntimeError(f"{name}: padding='same' needs stride 1, got {stride}")
    dilations = (dilation,) * rank if isinstance(dilation, int) else tuple(dilation) * (rank // len(dilation))
    totals = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        extra = [amount for total in reversed(totals) for amount in (0, total % 2)]
        input = pad(input, extra)
    return input, tuple(total // 2 for total in totals)


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
    """
    if isinstance(padding, str):
        input, padding = _padding_by_name("conv1d", input, weight, stride, padding, dilation)
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
    """
    if isinstance(padding, str):
        input, padding = _padding_by_name("conv2d", input, weight, stride, padding, dilation)
    return _conv2d(input, weight, bias, stride, padding, dilation, groups)


_conv_transpose1d = op("conv_transpose1d")
_conv_transpose2d = op("conv_transpose2d")


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
    """
    return _conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extends the last dimensions at both ends; negative amounts cut off.

    Args:
        input: Any shape.
        pad: Amounts (begin, end) of the last dimension, then of the one before it, and so on.
        mode: ``constant``, ``reflect``, ``replicate`` or ``circular``.
        value: The constant, 0 by default.

    Raises:
        ValueError: ``pad`` has an odd length or too many entries.
        NotImplementedError: Unknown mode.
    """
    try:
        rank = input.dim()
    except AttributeError:
        raise not_tensors("pad", input=input) from None
    if len(pad) % 2 or len(pad) // 2 > rank:
        raise ValueError(
            f"pad: expected an even number of amounts, at most {2 * rank} for shape "
            f"{tuple(input.shape)}, got {len(pad)}"
        )
    if mode == "constant":
        return _pad_constant(input, pad, 0 if value is None else value)
    amounts = [int(amount) for amount in pad]
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad: mode must be constant, reflect, replicate or circular, got {mode!r}")
    if value is not None:
        raise ValueError(f"pad: value is for mode 'constant', got mode {mode!r}")
    for i in range(len(amounts) // 2):
        input = _pad_by_index(input, input.dim() - 1 - i, amounts[2 * i], amounts[2 * i + 1], mode)
    return input


def _pad_constant_formula(input: Tensor, amounts: Sequence[int], value: float) -> Tensor:
    for i in range(len(amounts) // 2):
        dim, (begin, end) = input.dim() - 1 - i, amounts[2 * i : 2 * i + 2]
        size = input.shape[dim]
        start, stop = max(-begin, 0), size - max(-end, 0)
        if stop < start:
            raise RuntimeError(
                f"pad: cutting ({begin}, {end}) from size {size} of dimension {dim} leaves less than 0"
            )
        if (start, stop) != (0, size):
            input = input.narrow(dim, start, stop - start)
        parts = [input]
        for at_end, amount in ((False, begin), (True, end)):
            if amount > 0:
                shape = [amount if d == dim else n for d, n in enumerate(input.shape)]
                block = tensor.full(shape, value, dtype=input.dtype, device=input.device)
                parts.insert(len(parts) if at_end else 0, block)
        if len(parts) > 1:
            input = tensor.cat(parts, dim)
    return input if any(amounts) else input.clone()


_pad_constant = op("constant_pad_nd", _pad_constant_formula)


def _pad_by_index(input: Tensor, dim: int, begin: int, end: int, mode: str) -> Tensor:
    size = input.shape[dim]
    first, stop = (
        max(-begin, 0),
        size - max(-end, 0),
    )  # what negative amounts leave; the circle is made of that
    limit = {"reflect": size - 1, "replicate": None, "circular": stop - first}[mode]
    if size == 0 or stop < first or (limit is not None and max(begin, end) > limit):
        raise RuntimeError(f"pad: amounts ({begin}, {end}) are too large for mode {mode!r} and size {size}")
    places = range(-begin, size + end)
    if mode == "replicate":
        picked = [min(max(p, 0), size - 1) for p in places]
    elif mode == "circular":
        picked = [first + (p - first) % (stop - first) for p in places]
    else:
        picked = [-p if p < 0 else 2 * (size - 1) - p if p >= size else p for p in places]
    return input.index_select(dim, tensor.tensor(picked, dtype=tensor.int64, device=input.device))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r^2, H, W) to (..., C, H r, W r): channels become finer places."""
    *lead, channels, height, width = input.shape
    r = upscale_factor
    if r <= 0 or channels % (r * r):
        raise RuntimeError(
            f"pixel_shuffle: {channels} channels cannot be divided by upscale_factor {r} squared"
        )
    split = input.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.clone(memory_format="contiguous_format").reshape(
        *lead, channels // (r * r), height * r, width * r
    )


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) to (..., C r^2, H, W): the inverse of ``pixel_shuffle``."""
    *lead, channels, height, width = input.shape
    r = downscale_factor
    if r <= 0 or height % r or width % r:
        raise RuntimeError(f"pixel_unshuffle: {height} x {width} cannot be divided by downscale_factor {r}")
    split = input.reshape(*lead, channels, height // r, r, width // r, r)
    n = len(lead)
    moved = split.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.clone(memory_format="contiguous_format").reshape(
        *lead, channels * r * r, height // r, width // r
    )
