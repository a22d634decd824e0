"""Pooling: maxima and means over windows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, op, tensor
from taeda_nn._errors import not_tensors

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
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
_max_pool3d = op("max_pool3d")
_max_pool3d_with_indices = op("max_pool3d_with_indices")
_adaptive_avg_pool3d = op("adaptive_avg_pool3d")
_adaptive_max_pool3d = op("adaptive_max_pool3d")
_fractional_max_pool2d = op("fractional_max_pool2d")
_fractional_max_pool3d = op("fractional_max_pool3d")
_max_unpool2d, _max_unpool3d = op("max_unpool2d"), op("max_unpool3d")


def _ints(value: Any, n: int) -> tuple[int, ...]:
    if isinstance(value, int) or not isinstance(value, Iterable):
        return (value,) * n
    numbers = tuple(value)
    return numbers * n if len(numbers) == 1 else numbers


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

    Example:
        >>> F.max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """
    stride = kernel_size if stride is None else stride
    pool = _max_pool2d_with_indices if return_indices else _max_pool2d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last three dimensions.

    Args:
        input: (N, C, D, H, W) or (C, D, H, W).
        kernel_size: Size of the window.
        stride: Steps of the window; its size by default.
        padding: Places of -inf added on both sides, at most half the window.
        dilation: Distances between the window's elements.
        ceil_mode: Whether incomplete last windows count.
        return_indices: Whether to return the places of the maxima (in the flattened volume) too.
    """
    stride = kernel_size if stride is None else stride
    pool = _max_pool3d_with_indices if return_indices else _max_pool3d
    return pool(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """``max_pool1d`` with ``return_indices=True``."""
    return max_pool1d(input, kernel_size, *args, **(kwargs | {"return_indices": True}))


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """``max_pool2d`` with ``return_indices=True``."""
    return max_pool2d(input, kernel_size, *args, **(kwargs | {"return_indices": True}))


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """``max_pool3d`` with ``return_indices=True``."""
    return max_pool3d(input, kernel_size, *args, **(kwargs | {"return_indices": True}))


# The operators themselves: their missing stride is the window's size, as users expect.
avg_pool1d = op("avg_pool1d")
avg_pool2d = op("avg_pool2d")
avg_pool3d = op("avg_pool3d")


def _full_output(output_size: Any, input: Tensor, n: int) -> Any:
    """Replaces None by the input's size; one number stands for all dimensions, as in the operators."""
    if isinstance(output_size, int) or not (output_size is None or isinstance(output_size, Iterable)):
        return output_size
    sizes = (output_size,) * n if output_size is None else tuple(output_size)
    try:
        own = input.shape
    except AttributeError:
        raise not_tensors(f"adaptive pooling in {n} dimensions", input=input) from None
    if len(own) <= len(sizes):
        raise ValueError(
            f"adaptive pooling: Input dimension should be at least {len(sizes) + 1}, got shape {tuple(own)}"
        )
    if None not in sizes:
        return sizes
    return tuple(given if size is None else size for size, given in zip(sizes, own[-n:], strict=False))


def adaptive_avg_pool1d(input: Tensor, output_size: Ints) -> Tensor:
    """Mean over ``output_size`` windows that cover the last dimension evenly."""
    return _adaptive_avg_pool1d(input, _full_output(output_size, input, 1))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Mean over windows that cover the last two dimensions evenly; None keeps a dimension's size.

    Example:
        >>> F.adaptive_avg_pool2d(torch.randn(1, 64, 8, 9), (5, 7)).shape
        Size([1, 64, 5, 7])
    """
    return _adaptive_avg_pool2d(input, _full_output(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Mean over windows that cover the last three dimensions evenly; None keeps a dimension's size."""
    return _adaptive_avg_pool3d(input, _full_output(output_size, input, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Ints, return_indices: bool = False) -> Any:
    """Maximum over ``output_size`` windows that cover the last dimension evenly."""
    values, places = _adaptive_max_pool1d(input, _full_output(output_size, input, 1))
    return (values, places) if return_indices else values


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum over windows that cover the last two dimensions evenly; None keeps a dimension's size."""
    values, places = _adaptive_max_pool2d(input, _full_output(output_size, input, 2))
    return (values, places) if return_indices else values


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maximum over windows that cover the last three dimensions evenly; None keeps a dimension's size."""
    values, places = _adaptive_max_pool3d(input, _full_output(output_size, input, 3))
    return (values, places) if return_indices else values


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Ints, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool1d`` with ``return_indices=True``."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool2d`` with ``return_indices=True``."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool3d`` with ``return_indices=True``."""
    return adaptive_max_pool3d(input, output_size, True)


def _check_places(name: str, input: Tensor, n: int) -> None:
    """RuntimeError unless the input has ``n`` dimensions of places, and channels before them."""
    if not isinstance(input, Tensor):
        raise not_tensors(name, input=input)
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"{name}: argument 'input' has shape {tuple(input.shape)}, expected {n + 1} or {n + 2} dimensions"
        )


def _fractional(
    input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None, n: int
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{n}d"
    _check_places(name, input, n)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = tuple(output_ratio) if hasattr(output_ratio, "__iter__") else (output_ratio,) * n
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.shape[0]
        samples = tensor.rand(batch, input.shape[-n - 1], n, dtype=input.dtype, device=input.device)
    pool = _fractional_max_pool2d if n == 2 else _fractional_max_pool3d
    return pool(input, _ints(kernel_size, n), _ints(output_size, n), samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` and the places of the maxima in the flattened plane."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` and the places of the maxima in the flattened volume."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maximum over windows at random places of (N, C, H, W) or (C, H, W).

    Args:
        input: The images.
        kernel_size: Size of the windows.
        output_size: Size of the result; or
        output_ratio: the share of the input's size that it is, between 0 and 1.
        return_indices: Whether to return the places of the maxima (in the flattened plane) too.

    Source: Graham, "Fractional Max-Pooling", 2014.
    """
    values, places = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return (values, places) if return_indices else values


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maximum over windows at random places of (N, C, D, H, W) or (C, D, H, W); see `fractional_max_pool2d`."""
    values, places = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return (values, places) if return_indices else values


def _unpooled_size(
    name: str,
    input: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    wanted: Any,
) -> list[int]:
    """The size that pooling with these windows came from, or the wanted one where it is within a stride of that."""
    n = len(kernel)
    sizes = input.shape[-n:]
    usual = [
        (size - 1) * step + k - 2 * p for size, k, step, p in zip(sizes, kernel, stride, padding, strict=True)
    ]
    if wanted is None:
        return usual
    found = list(wanted)[2:] if len(wanted) == n + 2 else list(wanted)
    if len(found) != n:
        raise ValueError(
            f"{name}: output_size should be a sequence of {n} or {n + 2} elements, got {len(wanted)}"
        )
    for d, (size, middle, step) in enumerate(zip(found, usual, stride, strict=True)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f"{name}: invalid output_size {tuple(found)} (dim {d} must be between {middle - step} and "
                f"{middle + step})"
            )
    return found


def _unpooling(
    name: str, n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    """The sizes of the result, the strides and the paddings."""
    _check_places(name, input, n)
    kernel = _ints(kernel_size, n)
    steps, around = kernel if stride is None else _ints(stride, n), _ints(padding, n)
    for what, found in (("kernel_size", kernel), ("stride", steps), ("padding", around)):
        if len(found) != n:
            raise ValueError(f"{name}: argument '{what}' has {len(found)} numbers, expected 1 or {n}")
    sizes = _unpooled_size(name, input, kernel, steps, around, output_size)
    if min(sizes) < 0:
        raise ValueError(f"{name}: output_size must not be negative, got {tuple(sizes)}")
    return sizes, steps, around


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the elements of ``input`` at the places that ``max_pool1d`` found them at.

    Args:
        input: (N, C, L) or (C, L).
        indices: Places, as ``max_pool1d`` returns them.
        kernel_size, stride, padding: Of that pooling; its input's size is computed from them.
        output_size: That size where several are possible.
    """
    sizes, _, _ = _unpooling("max_unpool1d", 1, input, kernel_size, stride, padding, output_size)
    return _max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """`max_unpool1d` over the last two dimensions."""
    sizes, _, _ = _unpooling("max_unpool2d", 2, input, kernel_size, stride, padding, output_size)
    return _max_unpool2d(input, indices, sizes)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """`max_unpool1d` over the last three dimensions."""
    settings = _unpooling("max_unpool3d", 3, input, kernel_size, stride, padding, output_size)
    return _max_unpool3d(input, indices, *settings)


def _lp_pool(
    n: int, pool: Any, largest: Any, input: Tensor, norm_type: float, kernel_size: Any, *rest: Any
) -> Tensor:
    """The root of the sum of powers over windows; of infinite power the extremum of magnitudes."""
    stride, ceil_mode = rest
    if not isinstance(input, Tensor):
        raise not_tensors(f"lp_pool{n}d", input=input)
    if norm_type == math.inf:
        return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -math.inf:
        return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    means = pool(input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode)
    return (means.sign() * means.abs().relu()).mul(math.prod(_ints(kernel_size, n))).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of the last dimension."""
    return _lp_pool(1, F.avg_pool1d, F.max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of the last two dimensions."""
    return _lp_pool(2, F.avg_pool2d, F.max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of powers over windows of the last three dimensions."""
    return _lp_pool(3, F.avg_pool3d, F.max_pool3d, input, norm_type, kernel_size, stride, ceil_mode)
