"""Pooling: maxima and means over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor, op
from taeda_nn._errors import not_tensors

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
]

Ints = int | Sequence[int]

_max_pool1d = op("max_pool1d")
_max_pool1d_with_indices = op("max_pool1d_with_indices")
_max_pool2d = op("max_pool2d")
_max_pool2d_with_indices = op("max_pool2d_with_indices")
_adaptive_avg_pool1d = op("adaptive_avg_pool1d")
_adaptive_avg_pool2d = op("adaptive_avg_pool2d")
_adaptive_max_pool1d = op("adaptive_max_pool1d")
_adaptive_max_pool2d = op("adaptive_max_pool2d")


def _ints(value: Any, n: int) -> tuple[int, ...]:
    return (value,) * n if isinstance(value, int) else tuple(value) * (n // len(value))


def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last dimension.

    Args:
        input: (N, C, L) or (C, L).
        kernel_size: Length of the window.
        stride: Step of the window; its length by default.
        padding: Places of -inf added on both sides, at most half the window.
        dilation: Distance between the window's elements.
        ceil_mode: Whether an incomplete last window counts.
        return_indices: Whether to return the places of the maxima too.
    """
    stride = kernel_size if stride is None else stride
    pool = _max_pool1d_with_indices if return_indices else _max_pool1d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last two dimensions.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: Size of the window.
        stride: Steps of the window; its size by default.
        padding: Places of -inf added on both sides, at most half the window.
        dilation: Distances between the window's elements.
        ceil_mode: Whether incomplete last windows count.
        return_indices: Whether to return the places of the maxima (in the flattened plane) too.
    """
    stride = kernel_size if stride is None else stride
    pool = _max_pool2d_with_indices if return_indices else _max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """``max_pool1d`` with ``return_indices=True``."""
    return max_pool1d(input, kernel_size, *args, **kwargs, return_indices=True)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """``max_pool2d`` with ``return_indices=True``."""
    return max_pool2d(input, kernel_size, *args, **kwargs, return_indices=True)


# The operators themselves: their missing stride is the window's size, as users expect.
avg_pool1d = op("avg_pool1d")
avg_pool2d = op("avg_pool2d")


def _full_output(output_size: Any, input: Tensor, n: int) -> Any:
    """Replaces None by the input's size; one number stands for all dimensions, as in the operators."""
    if isinstance(output_size, int):
        return output_size
    sizes = (output_size,) * n if output_size is None else tuple(output_size)
    if len(sizes) == n and None not in sizes:
        return sizes
    try:
        own = input.shape[-n:]
    except AttributeError:
        raise not_tensors(f"adaptive pooling in {n} dimensions", input=input) from None
    return tuple(given if size is None else size for size, given in zip(sizes, own, strict=True))


def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """Mean over ``output_size`` windows that cover the last dimension evenly."""
    return _adaptive_avg_pool1d(input, _full_output(output_size, input, 1))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Mean over windows that cover the last two dimensions evenly; None keeps a dimension's size."""
    return _adaptive_avg_pool2d(input, _full_output(output_size, input, 2))


def adaptive_max_pool1d(input: Tensor, output_size: Ints, return_indices: bool = False) -> Any:
    """Maximum over ``output_size`` windows that cover the last dimension evenly."""
    values, places = _adaptive_max_pool1d(input, _full_output(output_size, input, 1))
    return (values, places) if return_indices else values


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum over windows that cover the last two dimensions evenly; None keeps a dimension's size."""
    values, places = _adaptive_max_pool2d(input, _full_output(output_size, input, 2))
    return (values, places) if return_indices else values


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of the last dimension."""
    sums = avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode) * _ints(kernel_size, 1)[0]
    return (sums.sign() * sums.abs().relu()).pow(1.0 / norm_type)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of the last two dimensions."""
    height, width = _ints(kernel_size, 2)
    sums = avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode) * (height * width)
    return (sums.sign() * sums.abs().relu()).pow(1.0 / norm_type)
