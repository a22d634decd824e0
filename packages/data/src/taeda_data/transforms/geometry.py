"""Where the pixels of an image lie: crops, flips, sizes, turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taeda_data.transforms.base import (
    RandomTransform,
    Transform,
    computed,
    image_of,
    integer,
    numbers,
    pair,
    uniform,
)
from taeda_data.transforms.resample import affine_inverse, check_mode, nearest, warped, weighted
from taeda_registry.slots import tensor

PADDINGS = ("constant", "edge", "reflect", "symmetric")


def cropped(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part of an image, a view."""
    return image[..., top : top + height, left : left + width]


def padded(image: Any, padding: tuple[int, int, int, int], fill: float, mode: str) -> Any:
    """``image`` with (left, top, right, bottom) pixels more."""
    left, top, right, bottom = padding
    rows = _places(image.shape[-2], top, bottom, mode)
    columns = _places(image.shape[-1], left, right, mode)
    if mode == "constant":
        result = tensor.full(
            (*image.shape[:-2], len(rows), len(columns)), fill, dtype=image.dtype, device=image.device
        )
        result[..., top : top + image.shape[-2], left : left + image.shape[-1]] = image
        return result
    return image[..., tensor.tensor(rows), :][..., tensor.tensor(columns)]


def _places(size: int, before: int, after: int, mode: str) -> list[int]:
    """Which old element stands at each new place."""
    if mode == "reflect" and max(before, after) >= size:
        raise ValueError(
            f"Pad: a padding of {max(before, after)} by reflection needs more than {size} pixels"
        )
    if mode in ("reflect", "symmetric"):
        period = 2 * size - 2 if mode == "reflect" else 2 * size
        folded = (
            [i % period for i in range(-before, size + after)] if period else [0] * (before + size + after)
        )
        mirror = period if mode == "reflect" else period - 1
        return [i if i < size else mirror - i for i in folded]
    return [min(max(i, 0), size - 1) for i in range(-before, size + after)]


def _sides(name: str, padding: Any) -> tuple[int, int, int, int]:
    values = (padding,) if isinstance(padding, int) else tuple(padding)
    sides = {1: values * 4, 2: values * 2, 4: values}.get(len(values))
    if sides is None or any(not isinstance(v, int) or v < 0 for v in values):
        raise ValueError(
            f"{name}: argument 'padding' is {padding!r}, expected an int, (left and right, top and bottom) "
            "or (left, top, right, bottom)"
        )
    return sides  # type: ignore[return-value]


class Pad(Transform):
    """More pixels at the edges.

    Args:
        padding: of all sides, (left and right, top and bottom), or (left, top, right, bottom).
        fill: value of new pixels of mode "constant".
        padding_mode: "constant", "edge" (the nearest), "reflect" (without the edge), "symmetric" (with it).
    """

    def __init__(self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant") -> None:
        self.padding, self.fill, self.padding_mode = _sides("Pad", padding), fill, padding_mode
        if padding_mode not in PADDINGS:
            raise ValueError(
                f"Pad: argument 'padding_mode' is {padding_mode!r}, expected one of {', '.join(PADDINGS)}"
            )

    def __call__(self, image: Any) -> Any:
        return padded(image_of(self, image), self.padding, self.fill, self.padding_mode)


class CenterCrop(Transform):
    """The middle of an image, with zeros around it where it is smaller.

    Args:
        size: height and width, or one int for both.
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair("CenterCrop", "size", size)

    def __call__(self, image: Any) -> Any:
        image, (height, width) = image_of(self, image), self.size
        more_y, more_x = max(height - image.shape[-2], 0), max(width - image.shape[-1], 0)
        if more_y or more_x:
            image = padded(
                image, (more_x // 2, more_y // 2, (more_x + 1) // 2, (more_y + 1) // 2), 0, "constant"
            )
        top, left = round((image.shape[-2] - height) / 2), round((image.shape[-1] - width) / 2)
        return cropped(image, top, left, height, width)


class RandomCrop(Transform):
    """A part of an image at a random place.

    Args:
        size: height and width, or one int for both.
        padding: pixels that are added first, as in `Pad`.
        pad_if_needed: whether an image that is smaller gets as many pixels as it needs on both sides.
        fill, padding_mode: as in `Pad`.

    Raises:
        ValueError: the image is smaller and ``pad_if_needed`` is False.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size = pair("RandomCrop", "size", size)
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode
        self._pad = Pad(padding or 0, fill, padding_mode)

    def __call__(self, image: Any) -> Any:
        image, (height, width) = image_of(self, image), self.size
        if self.padding is not None:
            image = self._pad(image)
        more_y, more_x = max(height - image.shape[-2], 0), max(width - image.shape[-1], 0)
        if self.pad_if_needed and (more_y or more_x):
            image = padded(image, (more_x, more_y, more_x, more_y), self.fill, self.padding_mode)
        free_y, free_x = image.shape[-2] - height, image.shape[-1] - width
        if free_y < 0 or free_x < 0:
            raise ValueError(
                f"RandomCrop: found an image of {tuple(image.shape[-2:])} pixels, expected at least {self.size}"
            )
        return cropped(image, integer(0, free_y + 1), integer(0, free_x + 1), height, width)


class RandomHorizontalFlip(RandomTransform):
    """The mirror image, left for right, with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def change(self, image: Any) -> Any:
        return image.flip(-1)


class RandomVerticalFlip(RandomTransform):
    """The mirror image, top for bottom, with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def change(self, image: Any) -> Any:
        return image.flip(-2)


class Resize(Transform):
    """Another size.

    Args:
        size: (height, width), or the length of the shorter side, the other following in proportion.
        interpolation: "nearest", "bilinear", "bicubic", "box", "hamming" or "lanczos".
        max_size: bound of the longer side where ``size`` is that of the shorter.
        antialias: whether a smaller image averages over all pixels that a new one covers, as Pillow does.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        sizes = (size,) if isinstance(size, int) else tuple(size)
        if len(sizes) not in (1, 2) or any(not isinstance(s, int) or s <= 0 for s in sizes):
            raise ValueError(
                f"Resize: argument 'size' is {size!r}, expected a positive int or (height, width)"
            )
        if max_size is not None and (len(sizes) == 2 or max_size <= sizes[0]):
            raise ValueError(
                f"Resize: argument 'max_size' is {max_size}, expected None, or more than the length of the "
                f"shorter side; found size {size!r}"
            )
        self.size, self.interpolation = sizes, check_mode("Resize", interpolation)
        self.max_size, self.antialias = max_size, bool(antialias)

    def __call__(self, image: Any) -> Any:
        image = image_of(self, image)
        height, width = self._new_size(*image.shape[-2:])
        if (height, width) == tuple(image.shape[-2:]):
            return image
        # One axis after the other, integers rounded in between, as Pillow does.
        for dim, size in ((-1, width), (-2, height)):
            image = self._along(image, dim, size)
        return image

    def _along(self, image: Any, dim: int, size: int) -> Any:
        if self.interpolation == "nearest":
            return nearest(image, dim, size)
        return computed(image, lambda x: weighted(x, dim, size, self.interpolation, self.antialias))

    def _new_size(self, height: int, width: int) -> tuple[int, int]:
        if len(self.size) == 2:
            return self.size
        short, long = min(height, width), max(height, width)
        new_short, new_long = self.size[0], int(self.size[0] * long / short)
        if self.max_size is not None and new_long > self.max_size:
            new_short, new_long = int(self.max_size * new_short / new_long), self.max_size
        return (new_short, new_long) if height <= width else (new_long, new_short)


class RandomResizedCrop(Transform):
    """A part of random area and aspect, at one size (the "Inception crop", Szegedy et al. 2015).

    Args:
        size: height and width of the result, or one int for both.
        scale: least and greatest share of the image's area.
        ratio: least and greatest width / height.
        interpolation, antialias: as in `Resize`.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        self.size = pair("RandomResizedCrop", "size", size)
        self.scale = numbers("RandomResizedCrop", "scale", scale, (2,))
        self.ratio = numbers("RandomResizedCrop", "ratio", ratio, (2,))
        for name, (low, high) in (("scale", self.scale), ("ratio", self.ratio)):
            if not 0 < low <= high:
                raise ValueError(
                    f"RandomResizedCrop: argument {name!r} is {(low, high)}, expected 0 < least <= greatest"
                )
        self._resize = Resize(self.size, interpolation, antialias=antialias)

    def __call__(self, image: Any) -> Any:
        return self._resize(cropped(image_of(self, image), *self._place(*image.shape[-2:])))

    def _place(self, height: int, width: int) -> tuple[int, int, int, int]:
        low, high = (math.log(r) for r in self.ratio)
        for _ in range(10):
            area, aspect = height * width * uniform(*self.scale), math.exp(uniform(low, high))
            new_width, new_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < new_width <= width and 0 < new_height <= height:
                top, left = integer(0, height - new_height + 1), integer(0, width - new_width + 1)
                return top, left, new_height, new_width
        aspect = min(max(width / height, self.ratio[0]), self.ratio[1])
        new_width, new_height = min(width, round(height * aspect)), min(height, round(width / aspect))
        return (height - new_height) // 2, (width - new_width) // 2, new_height, new_width


class RandomAffine(Transform):
    """A random turn, shift, scale and shear about the middle.

    Args:
        degrees: least and greatest angle against the clock, or the greatest in both directions.
        translate: greatest shift as a share of (width, height).
        scale: least and greatest factor.
        shear: least and greatest angle in x, and optionally in y; or the greatest in both directions.
        interpolation: "nearest" or "bilinear".
        fill: value of pixels that come from outside.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: float = 0,
    ) -> None:
        name = type(self).__name__
        self.degrees = _angles(name, "degrees", degrees, (1, 2))
        self.translate = None if translate is None else numbers(name, "translate", translate, (2,))
        if self.translate is not None and not all(0 <= t <= 1 for t in self.translate):
            raise ValueError(f"{name}: argument 'translate' is {translate!r}, expected shares from 0 to 1")
        self.scale = None if scale is None else numbers(name, "scale", scale, (2,))
        if self.scale is not None and not 0 < self.scale[0] <= self.scale[1]:
            raise ValueError(f"{name}: argument 'scale' is {scale!r}, expected 0 < least <= greatest")
        self.shear = None if shear is None else _angles(name, "shear", shear, (1, 2, 4))
        self.interpolation = check_mode(name, interpolation, ("nearest", "bilinear"))
        self.fill = fill

    def __call__(self, image: Any) -> Any:
        height, width = image_of(self, image).shape[-2:]
        turn = uniform(*self.degrees)
        right, down = self.translate or (0.0, 0.0)
        shift = (float(round(uniform(-1, 1) * right * width)), float(round(uniform(-1, 1) * down * height)))
        scale = uniform(*self.scale) if self.scale is not None else 1.0
        shear = self.shear or (0.0, 0.0)
        slant = (uniform(*shear[:2]), uniform(*shear[2:]) if len(shear) == 4 else 0.0)
        # The axis of rows points down: against the clock is the negative angle there.
        inverse = affine_inverse(-turn, shift, scale, slant, (width / 2, height / 2))
        return computed(image, lambda x: warped(x, inverse, height, width, self.interpolation, self.fill))


class RandomRotation(RandomAffine):
    """A random turn about the middle.

    Args:
        degrees: least and greatest angle against the clock, or the greatest in both directions.
        interpolation: "nearest" or "bilinear".
        expand: whether the result is as large as the turned image.
        fill: value of pixels that come from outside.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = "nearest",
        expand: bool = False,
        fill: float = 0,
    ) -> None:
        super().__init__(degrees, interpolation=interpolation, fill=fill)
        self.expand = expand

    def __call__(self, image: Any) -> Any:
        if not self.expand:
            return super().__call__(image)
        height, width = image_of(self, image).shape[-2:]
        turn = uniform(*self.degrees)
        new_height, new_width = _turned_size(height, width, turn)
        inverse = affine_inverse(-turn, (0.0, 0.0), 1.0, (0.0, 0.0), (width / 2, height / 2))
        shift = ((new_width - width) / 2, (new_height - height) / 2)
        inverse[:, 2] -= inverse[:, :2] @ shift
        return computed(
            image, lambda x: warped(x, inverse, new_height, new_width, self.interpolation, self.fill)
        )


def _turned_size(height: int, width: int, degrees: float) -> tuple[int, int]:
    """The least height and width, in whole pixels, that hold an image turned about its middle."""
    cosine, sine = (round(f(math.radians(degrees)), 15) for f in (math.cos, math.sin))
    corners = [(x - width / 2, y - height / 2) for x in (0, width) for y in (0, height)]
    across = [cosine * x + sine * y + width / 2 for x, y in corners]
    down = [cosine * y - sine * x + height / 2 for x, y in corners]
    return math.ceil(max(down)) - math.floor(min(down)), math.ceil(max(across)) - math.floor(min(across))


def _angles(name: str, argument: str, value: Any, count: Sequence[int]) -> tuple[float, ...]:
    values = numbers(name, argument, value, count)
    if len(values) == 1:
        if values[0] < 0:
            raise ValueError(
                f"{name}: argument {argument!r} is {value!r}, expected a positive angle or a range"
            )
        return (-values[0], values[0])
    return values
