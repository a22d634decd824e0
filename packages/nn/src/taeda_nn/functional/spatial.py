"""Images of another size, images sampled at points, and windows as columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from taeda_nn._bind import Tensor, op
from taeda_nn._errors import not_tensors
from taeda_nn.functional.pooling import (
    _ints,
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "interpolate",
    "native_channel_shuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

Ints = int | Sequence[int]

_resample = op("resample")
_grid_sampler = op("grid_sampler")
_affine_grid_generator = op("affine_grid_generator")
_im2col, _col2im = op("im2col"), op("col2im")
channel_shuffle = op("channel_shuffle")
native_channel_shuffle = op("channel_shuffle")

_COPYING = ("nearest", "area", "nearest-exact")
#: By mode the dimensions of the inputs that it takes, and what the operator calls it.
_MODES = {
    "nearest": ((3, 4, 5), "nearest"),
    "nearest-exact": ((3, 4, 5), "nearest-exact"),
    "area": ((3, 4, 5), ""),
    "linear": ((3,), "linear"),
    "bilinear": ((4,), "linear"),
    "bicubic": ((4,), "cubic"),
    "lanczos": ((4,), "lanczos"),
    "trilinear": ((5,), "linear"),
}
_AREA = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


def _for_each(name: str, what: str, value: Any, input: Tensor) -> list[Any]:
    """One value for every dimension behind the channels."""
    rank = input.dim() - 2
    if not isinstance(value, (list, tuple)):
        return [value] * rank
    if len(value) != rank:
        raise ValueError(
            f"{name}: {what} {tuple(value)} has {len(value)} numbers, expected {rank} for an input of shape "
            f"{tuple(input.shape)}, (N, C, d1, d2, ...)"
        )
    return list(value)


def _sizes_and_scales(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None, area: bool
) -> tuple[list[int], list[float]]:
    """The sizes of the result, and the factors that positions are computed from: none where sizes say it all."""
    name = "interpolate"
    if (size is None) == (scale_factor is None):
        both = "only one of size or scale_factor should be defined"
        raise ValueError(
            f"{name}: {both if size is not None else 'either size or scale_factor should be defined'}"
        )
    if size is not None:
        if recompute:
            raise ValueError(f"{name}: recompute_scale_factor is not meaningful with an explicit size")
        sizes = _for_each(name, "size", size, input)
        for number in sizes:
            if not hasattr(number, "__index__"):
                kinds = [type(item).__name__ for item in sizes]
                raise TypeError(f"{name}: expected size to be one int or a tuple of ints, found {kinds}")
        return sizes, []
    factors = [float(factor) for factor in _for_each(name, "scale_factor", scale_factor, input)]
    made = [math.floor(given * factor) for given, factor in zip(input.shape[2:], factors, strict=True)]
    return made, [] if recompute or area else factors


def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input with other sizes of its last dimensions.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W); floating, uint8 for images too.
        size: Sizes of the result behind the channels, or one for all.
        scale_factor: What the input's sizes are multiplied by, in place of ``size``.
        mode: 'nearest', 'nearest-exact' (the nearest centre, as in Pillow and scikit-image), 'area' (means of parts),
            'linear' for (N, C, L), 'bilinear', 'bicubic' or 'lanczos' for images, 'trilinear' for volumes.
        align_corners: Whether the centres of the elements at the corners stay in place, else their outer edges do.
        recompute_scale_factor: Whether positions follow from the sizes, not from ``scale_factor``.
        antialias: Whether the filter widens where images shrink, as Pillow's does; 'bilinear', 'bicubic', 'lanczos'.

    Returns: dtype and layout of the input.

    Raises:
        ValueError: Arguments that contradict each other.
        NotImplementedError: A mode that does not fit the number of dimensions.

    Example:
        >>> F.interpolate(torch.arange(4.0).view(1, 1, 4), scale_factor=2, mode="linear")
        tensor([[[0.0000, 0.2500, 0.7500, 1.2500, 1.7500, 2.2500, 2.7500, 3.0000]]])
    """
    if not isinstance(input, Tensor):
        raise not_tensors("interpolate", input=input)
    if mode in tuple(_COPYING) and align_corners is not None:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )
    sizes, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor, mode == "area")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "interpolate: Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a "
            "4-D tensor as input"
        )
    ranks, filter = _MODES.get(mode if isinstance(mode, str) else "", ((), ""))
    if input.dim() not in ranks:
        raise NotImplementedError(
            f"interpolate: Got {input.dim()}D input, but mode {mode!r} "
            + (f"needs {' or '.join(map(str, ranks))}D input" if ranks else f"is none of {', '.join(_MODES)}")
        )
    if mode == "area":
        return _AREA[input.dim()](input, sizes)
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(
            "interpolate: Lanczos mode requires antialias=True and does not support align_corners=True"
        )
    return _resample(input, sizes, filter, bool(align_corners), antialias, scales)


def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Deprecated name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Deprecated: `interpolate` with mode 'nearest'."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Deprecated: `interpolate` with mode 'bilinear' and aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=3,
        )
    return bool(align_corners)


_SAMPLED = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_OUTSIDE = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples images or volumes at points.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H', W', 2) or (N, D', H', W', 3): points (x, y) or (x, y, z), from -1 to 1 across the input.
        mode: 'bilinear' (of volumes trilinear), 'nearest', or for images 'bicubic'.
        padding_mode: What lies outside: 'zeros', 'border' (the nearest element inside) or 'reflection'.
        align_corners: Whether -1 and 1 are the centres of the elements at the corners, else their outer edges.

    Returns: (N, C, H', W') or (N, C, D', H', W').

    Raises:
        ValueError: An unknown mode.
        RuntimeError: Shapes or dtypes that do not fit.

    Example:
        >>> grid = F.affine_grid(torch.eye(2, 3)[None], (1, 3, 8, 8))
        >>> F.grid_sample(torch.randn(1, 3, 16, 16), grid, align_corners=False).shape
        Size([1, 3, 8, 8])

    Source: Jaderberg et al., "Spatial Transformer Networks", 2015.
    """
    for what, value, known in (("mode", mode, _SAMPLED), ("padding_mode", padding_mode, _OUTSIDE)):
        if value not in tuple(known):
            raise ValueError(f"grid_sample: expected {what} to be one of {tuple(known)}, but got: {value!r}")
    return _grid_sampler(input, grid, _SAMPLED[mode], _OUTSIDE[padding_mode], _aligned(align_corners))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points of affine maps, for `grid_sample`.

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes.
        size: Sizes (N, C, H, W) or (N, C, D, H, W) of the result of `grid_sample`.
        align_corners: As for `grid_sample`.

    Returns: (N, H, W, 2) or (N, D, H, W, 3).

    Example:
        >>> F.affine_grid(torch.eye(2, 3)[None], (1, 3, 8, 8)).shape
        Size([1, 8, 8, 2])
    """
    if not isinstance(theta, Tensor):
        raise not_tensors("affine_grid", theta=theta)
    align_corners = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: Expected theta to have floating point type, but got {theta.dtype}")
    rank = len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError(f"affine_grid only supports 4D and 5D sizes, got size {tuple(size)}")
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (rank, rank + 1):
        raise ValueError(
            f"affine_grid: Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size "
            f"{tuple(size)}, got {tuple(theta.shape)}"
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "affine_grid: a size of 1 has no corners to align; with align_corners=True its centre is taken",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"affine_grid: Expected non-zero, positive output size, got {tuple(size)}")
    return _affine_grid_generator(theta, tuple(size), align_corners)


def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The windows of images (N, C, H, W) or (C, H, W) as columns (N, C KH KW, L), one for each of L positions.

    Example:
        >>> F.unfold(torch.randn(2, 5, 3, 4), (2, 3)).shape
        Size([2, 30, 4])
    """
    return _im2col(input, _ints(kernel_size, 2), _ints(dilation, 2), _ints(padding, 2), _ints(stride, 2))


def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Sums columns (N, C KH KW, L) of windows into images (N, C, H, W) of ``output_size``: the adjoint of `unfold`.

    Example:
        >>> F.fold(torch.randn(1, 12, 12), output_size=(4, 5), kernel_size=(2, 2)).shape
        Size([1, 3, 4, 5])
    """
    return _col2im(
        input,
        _ints(output_size, 2),
        _ints(kernel_size, 2),
        _ints(dilation, 2),
        _ints(padding, 2),
        _ints(stride, 2),
    )
