"""Images at new sizes: each axis is a product with a matrix of weights, as in Pillow."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from taeda_registry.slots import tensor

_FILTERS = {
    "bilinear": (1.0, lambda x: np.maximum(1.0 - np.abs(x), 0.0)),
    "bicubic": (2.0, lambda x: _cubic(np.abs(x), -0.5)),
    "box": (0.5, lambda x: ((x > -0.5) & (x <= 0.5)).astype(np.float64)),
    "hamming": (1.0, lambda x: np.where(np.abs(x) < 1, np.sinc(x) * (0.54 + 0.46 * np.cos(np.pi * x)), 0.0)),
    "lanczos": (3.0, lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0.0)),
}
MODES = ("nearest", *_FILTERS)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The cubic convolution kernel (Keys 1981) at distances ``x``."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


@functools.lru_cache(maxsize=256)
def _weights(size: int, new: int, mode: str, antialias: bool) -> np.ndarray:
    """Weights (new, size) of the old elements in each new one."""
    support, function = _FILTERS[mode]
    scale = size / new
    stretch = max(scale, 1.0) if antialias else 1.0
    centers = (np.arange(new) + 0.5) * scale
    places = np.arange(size)[None] + 0.5 - centers[:, None]
    first = np.maximum(np.floor(centers - support * stretch + 0.5), 0)
    last = np.minimum(np.floor(centers + support * stretch + 0.5), size)
    inside = (np.arange(size)[None] >= first[:, None]) & (np.arange(size)[None] < last[:, None])
    weights = np.where(inside, function(places / stretch), 0.0)
    return weights / weights.sum(1, keepdims=True)


def weighted(image: Any, dim: int, new: int, mode: str, antialias: bool = True) -> Any:
    """``image`` (..., H, W) in floating point with ``new`` elements along ``dim``, -1 or -2."""
    if image.shape[dim] == new:
        return image
    matrix = tensor.from_numpy(_weights(image.shape[dim], new, mode, antialias)).to(image.device, image.dtype)
    return image @ matrix.T if dim == -1 else matrix @ image


def nearest(image: Any, dim: int, new: int) -> Any:
    """As `weighted`, of the nearest elements, in any dtype."""
    size = image.shape[dim]
    places = np.floor((np.arange(new) + 0.5) * (size / new)).astype(np.int64)
    return image.index_select(dim, tensor.from_numpy(np.minimum(places, size - 1)).to(image.device))


def warped(image: Any, inverse: np.ndarray, height: int, width: int, mode: str, fill: float) -> Any:
    """``image`` (..., H, W) in floating point, seen through an affine map.

    Args:
        image: (..., H, W).
        inverse: (2, 3), from the new pixels' centres to the old ones', both counted from the image's corner.
        height, width: of the result.
        mode: "nearest" or "bilinear".
        fill: what stands outside of the old image.
    """
    y, x = np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij")
    old_x, old_y = np.tensordot(inverse, np.stack([x, y, np.ones_like(x)]), axes=1) - 0.5
    if mode == "nearest":
        return _taken(image, np.floor(old_y + 0.5), np.floor(old_x + 0.5), fill)
    top, left = np.floor(old_y), np.floor(old_x)
    down, right = (tensor.from_numpy(v).to(image.dtype) for v in (old_y - top, old_x - left))
    upper = _taken(image, top, left, fill) * (1 - right) + _taken(image, top, left + 1, fill) * right
    lower = _taken(image, top + 1, left, fill) * (1 - right) + _taken(image, top + 1, left + 1, fill) * right
    return upper * (1 - down) + lower * down


def _taken(image: Any, rows: np.ndarray, columns: np.ndarray, fill: float) -> Any:
    height, width = image.shape[-2:]
    inside = tensor.from_numpy((rows >= 0) & (rows < height) & (columns >= 0) & (columns < width))
    places = np.clip(rows, 0, height - 1) * width + np.clip(columns, 0, width - 1)
    flat = image.reshape(*image.shape[:-2], -1)
    found = flat.index_select(-1, tensor.from_numpy(places.astype(np.int64)).reshape(-1))
    return tensor.where(inside, found.reshape(*image.shape[:-2], *rows.shape), fill)


def check_mode(name: str, mode: Any, allowed: tuple[str, ...] = MODES) -> str:
    """An interpolation by its name; members of enumerations whose value is one are taken too."""
    mode = getattr(mode, "value", mode)
    if mode not in allowed:
        raise ValueError(
            f"{name}: argument 'interpolation' is {mode!r}, expected one of {', '.join(allowed)}"
        )
    return str(mode)


def affine_inverse(
    angle: float,
    translate: tuple[float, float],
    scale: float,
    shear: tuple[float, float],
    center: tuple[float, float],
) -> np.ndarray:
    """The (2, 3) map from new to old pixels of a turn by ``angle`` degrees, a scale and shears about ``center``."""
    turn, (shear_x, shear_y) = math.radians(angle), (math.radians(s) for s in shear)
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    slant_y = np.array([[1.0, 0.0], [-math.tan(shear_y), 1.0]])
    slant_x = np.array([[1.0, -math.tan(shear_x)], [0.0, 1.0]])
    back = np.linalg.inv(rotation @ slant_y @ slant_x * scale)
    offset = np.array(center) - back @ (np.array(center) + np.array(translate))
    return np.column_stack([back, offset])
