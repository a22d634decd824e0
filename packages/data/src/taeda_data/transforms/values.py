"""What the numbers of an image mean: conversion, scale, normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taeda_data.readers import folder
from taeda_data.transforms.base import Transform, computed, image_of, limits, whole
from taeda_registry.slots import tensor


class ToImage(Transform):
    """An image of Pillow or an array (H, W) or (H, W, C) as a tensor (C, H, W) of the same dtype; tensors stay."""

    def __call__(self, image: Any) -> Any:
        return image if isinstance(image, tensor.Tensor) else folder.image_to_tensor(image)


class PILToTensor(ToImage):
    """As `ToImage`."""


class ToTensor(ToImage):
    """As `ToImage`, and uint8 becomes float32 in [0, 1]."""

    def __call__(self, image: Any) -> Any:
        result = super().__call__(image)
        return scaled(result, tensor.float32) if result.dtype == tensor.uint8 else result


class ToDtype(Transform):
    """Another dtype.

    Args:
        dtype: the new one.
        scale: whether values are scaled so that the greatest of one dtype becomes the greatest of the other, which is
            1 for floating-point numbers.
    """

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        self.dtype, self.scale = dtype, scale

    def __call__(self, image: Any) -> Any:
        return scaled(image, self.dtype) if self.scale else image.to(self.dtype)


class ConvertImageDtype(ToDtype):
    """`ToDtype` that scales."""

    def __init__(self, dtype: Any = None) -> None:
        super().__init__(tensor.float32 if dtype is None else dtype, scale=True)


def scaled(image: Any, dtype: Any) -> Any:
    """``image`` in ``dtype``, so that the greatest value of the one becomes that of the other.

    Integers that get fewer bits lose their last ones; those that get more are multiplied by 2 to the number of new
    bits; floating-point numbers become integers by a factor just below the greatest and one, and are cut off.
    """
    if image.dtype == dtype:
        return image
    to_float = tensor.zeros((), dtype=dtype).is_floating_point()
    if image.is_floating_point():
        if to_float:
            return image.to(dtype)
        greatest = limits(dtype).max
        return (image.to(tensor.float64) * (greatest + 1.0 - 1e-3)).clamp(0, greatest).to(dtype)
    if to_float:
        return image.to(dtype) / whole(image)
    bits = limits(dtype).max.bit_length() - limits(image.dtype).max.bit_length()
    return image.to(dtype) * 2**bits if bits > 0 else (image // 2**-bits).to(dtype)


class ToPILImage(Transform):
    """A tensor (C, H, W) or array (H, W, C) as an image of Pillow; floating-point values are of [0, 1].

    Args:
        mode: Pillow's mode; by default what follows from the channels: 1 "L", 2 "LA", 3 "RGB", 4 "RGBA".
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, image: Any) -> Any:
        from PIL import Image

        if isinstance(image, tensor.Tensor):
            image = image.mul(255).to(tensor.uint8) if image.is_floating_point() else image
            image = image.numpy() if image.ndim == 2 else image.permute(1, 2, 0).numpy()
        array = np.asarray(image)
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[:, :, 0]
        if array.ndim not in (2, 3):
            raise ValueError(
                f"ToPILImage: found an image of shape {array.shape}, expected (C, H, W) or (H, W)"
            )
        if array.ndim == 3 and not 2 <= array.shape[2] <= 4:
            raise ValueError(f"ToPILImage: found {array.shape[2]} channels, expected 1 to 4")
        made = Image.fromarray(np.ascontiguousarray(array))
        return made if self.mode in (None, made.mode) else made.convert(self.mode)


class Normalize(Transform):
    """(image - mean) / std for each channel.

    Args:
        mean, std: one number for each channel.
        inplace: whether the image itself is changed.

    Raises:
        ValueError: a std of 0, or numbers for another count of channels.
        TypeError: an image of integers.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        if any(s == 0 for s in std):
            raise ValueError(f"Normalize: argument 'std' is {std!r}, expected no zero")
        if len(mean) != len(std):
            raise ValueError(f"Normalize: found {len(mean)} means and {len(std)} deviations")
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def __call__(self, image: Any) -> Any:
        image_of(self, image)
        if not image.is_floating_point():
            raise TypeError(
                f"Normalize: found an image of {image.dtype}, expected floating point; see ToDtype"
            )
        if len(self.mean) not in (1, image.shape[-3]):
            raise ValueError(f"Normalize: found {image.shape[-3]} channels, expected {len(self.mean)}")
        mean, std = (
            tensor.tensor(v, dtype=image.dtype, device=image.device).reshape(-1, 1, 1)
            for v in (self.mean, self.std)
        )
        return image.sub_(mean).div_(std) if self.inplace else (image - mean) / std


class LinearTransformation(Transform):
    """(x - mean_vector) @ transformation_matrix, of the flattened image (whitening).

    Args:
        transformation_matrix: (D, D).
        mean_vector: (D,).
    """

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        size = transformation_matrix.shape
        if len(size) != 2 or size[0] != size[1] or tuple(mean_vector.shape) != (size[0],):
            raise ValueError(
                f"LinearTransformation: found a matrix of shape {tuple(size)} and a mean of shape "
                f"{tuple(mean_vector.shape)}, expected (D, D) and (D,)"
            )
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def __call__(self, image: Any) -> Any:
        shape = image_of(self, image).shape
        if shape[-3] * shape[-2] * shape[-1] != self.mean_vector.shape[0]:
            raise ValueError(
                f"LinearTransformation: found an image of shape {tuple(shape)}, "
                f"expected {self.mean_vector.shape[0]} elements"
            )
        flat = image.reshape(*shape[:-3], -1) - self.mean_vector
        return (flat @ self.transformation_matrix).reshape(shape)


def blend(image: Any, other: Any, ratio: float) -> Any:
    """ratio * image + (1 - ratio) * other, held within the range of the image's dtype."""
    bound = whole(image)
    return computed(image, lambda x: (ratio * x + (1.0 - ratio) * other).clamp(0, bound))
