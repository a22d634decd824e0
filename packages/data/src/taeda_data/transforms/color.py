"""What an image looks like: brightness, colours, blur, holes."""

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
    uniform,
    whole,
)
from taeda_data.transforms.geometry import padded
from taeda_data.transforms.values import blend
from taeda_registry.slots import tensor

_LUMA = (0.2989, 0.587, 0.114)  # ITU-R 601-2


def gray(image: Any) -> Any:
    """The luma (..., 1, H, W) of an image with one or three channels, in its dtype."""
    if image.shape[-3] == 1:
        return image
    if image.shape[-3] != 3:
        raise ValueError(f"expected an image of 1 or 3 channels, found {image.shape[-3]}")
    value = sum(weight * image[..., c : c + 1, :, :].to(_real(image)) for c, weight in enumerate(_LUMA))
    return value.to(image.dtype)  # type: ignore[union-attr]


def _real(image: Any) -> Any:
    return image.dtype if image.is_floating_point() else tensor.float32


class Grayscale(Transform):
    """The luma of an image.

    Args:
        num_output_channels: 1, or 3 equal ones.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ValueError(
                f"Grayscale: argument 'num_output_channels' is {num_output_channels}, expected 1 or 3"
            )
        self.num_output_channels = num_output_channels

    def __call__(self, image: Any) -> Any:
        value = gray(image_of(self, image))
        return (
            value if self.num_output_channels == 1 else value.expand(*value.shape[:-3], 3, *value.shape[-2:])
        )


class RandomGrayscale(RandomTransform):
    """The luma in all channels, with probability ``p``."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def change(self, image: Any) -> Any:
        return gray(image).expand(image.shape)


class RandomInvert(RandomTransform):
    """The negative of an image, with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p)

    def change(self, image: Any) -> Any:
        return (1.0 if image.is_floating_point() else int(whole(image))) - image


class RandomSolarize(RandomTransform):
    """Values of at least ``threshold`` inverted, with probability ``p``."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def change(self, image: Any) -> Any:
        inverted = (1.0 if image.is_floating_point() else int(whole(image))) - image
        return tensor.where(image >= self.threshold, inverted, image)


class RandomPosterize(RandomTransform):
    """Only the first ``bits`` bits of uint8 values, with probability ``p``."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        if not 0 <= bits <= 8:
            raise ValueError(f"RandomPosterize: argument 'bits' is {bits}, expected 0 to 8")
        self.bits = bits

    def change(self, image: Any) -> Any:
        if image.dtype != tensor.uint8:
            raise TypeError(f"RandomPosterize: found an image of {image.dtype}, expected uint8")
        return image & (256 - 2 ** (8 - self.bits))


def _hue_turned(image: Any, turn: float) -> Any:
    """``image`` (..., 3, H, W) in [0, 1] with its hue shifted by ``turn`` of a circle (Smith 1978)."""
    red, green, blue = image.unbind(-3)
    high, low = image.amax(-3), image.amin(-3)
    spread = high - low
    safe = tensor.where(spread == 0, 1.0, spread)
    hue = tensor.where(
        high == red,
        (green - blue) / safe,
        tensor.where(high == green, 2.0 + (blue - red) / safe, 4.0 + (red - green) / safe),
    )
    hue = (hue / 6.0 + turn) % 1.0 * 6.0
    # Each channel falls and rises with the distance of its own hue.
    parts = [((hue + offset) % 6.0) for offset in (5.0, 3.0, 1.0)]
    return tensor.stack([high - spread * tensor.minimum(p, 4.0 - p).clamp(0, 1) for p in parts], -3)


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue, changed at random in random order.

    Args:
        brightness, contrast, saturation: the greatest change of the factor 1, or least and greatest factor.
        hue: the greatest shift as a share of the circle, at most 0.5, or least and greatest.
    """

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
    ) -> None:
        self.brightness = self._range("brightness", brightness)
        self.contrast = self._range("contrast", contrast)
        self.saturation = self._range("saturation", saturation)
        self.hue = self._range("hue", hue, center=0.0, bounds=(-0.5, 0.5))

    @staticmethod
    def _range(
        name: str, value: Any, center: float = 1.0, bounds: tuple[float, float] = (0.0, math.inf)
    ) -> tuple[float, float] | None:
        values = numbers("ColorJitter", name, value, (1, 2))
        if len(values) == 1:
            if values[0] < 0:
                raise ValueError(
                    f"ColorJitter: argument {name!r} is {value!r}, expected a number that is not negative"
                )
            values = (max(center - values[0], bounds[0]) if center else -values[0], center + values[0])
        low, high = values
        if not bounds[0] <= low <= high <= bounds[1]:
            raise ValueError(f"ColorJitter: argument {name!r} is {value!r}, expected values within {bounds}")
        return None if low == high == center else (low, high)

    def __call__(self, image: Any) -> Any:
        image_of(self, image)
        for place in tensor.randperm(4).tolist():
            name = ("brightness", "contrast", "saturation", "hue")[place]
            if (bounds := getattr(self, name)) is not None:
                image = getattr(self, f"_change_{name}")(image, uniform(*bounds))
        return image

    @staticmethod
    def _change_brightness(image: Any, factor: float) -> Any:
        return blend(image, 0.0, factor)

    @staticmethod
    def _change_contrast(image: Any, factor: float) -> Any:
        return blend(image, gray(image).to(_real(image)).mean((-3, -2, -1), keepdim=True), factor)

    @staticmethod
    def _change_saturation(image: Any, factor: float) -> Any:
        return blend(image, gray(image).to(_real(image)), factor)

    @staticmethod
    def _change_hue(image: Any, shift: float) -> Any:
        if image.shape[-3] == 1:
            return image
        bound = whole(image)
        return computed(image, lambda x: _hue_turned(x / bound, shift) * bound)


class GaussianBlur(Transform):
    """A blur by a normal distribution, with reflected edges.

    Args:
        kernel_size: odd height and width of the window, or one int for both.
        sigma: deviation in pixels, or least and greatest one.
    """

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(sizes) != 2 or any(s <= 0 or s % 2 == 0 for s in sizes):
            raise ValueError(
                f"GaussianBlur: argument 'kernel_size' is {kernel_size!r}, expected odd positive ints"
            )
        bounds = numbers("GaussianBlur", "sigma", sigma, (1, 2))
        if not 0 < bounds[0] <= bounds[-1]:
            raise ValueError(f"GaussianBlur: argument 'sigma' is {sigma!r}, expected 0 < least <= greatest")
        self.kernel_size, self.sigma = sizes, (bounds[0], bounds[-1])

    def __call__(self, image: Any) -> Any:
        image_of(self, image)
        sigma = uniform(*self.sigma)
        return computed(image, lambda x: self._blurred(x, sigma))

    def _blurred(self, image: Any, sigma: float) -> Any:
        rows, columns = self.kernel_size
        wide = padded(image, (columns // 2, rows // 2, columns // 2, rows // 2), 0, "reflect")
        for dim, size in ((-2, rows), (-1, columns)):
            places = tensor.arange(size, dtype=image.dtype, device=image.device) - size // 2
            weights = tensor.exp(-0.5 * (places / sigma) ** 2)
            weights = (weights / weights.sum()).tolist()
            length = image.shape[dim]
            wide = sum(w * wide.narrow(dim, i, length) for i, w in enumerate(weights))
        return wide


class RandomErasing(RandomTransform):
    """A random rectangle overwritten (Zhong et al. 2017), with probability ``p``.

    Args:
        p: the probability.
        scale: least and greatest share of the image's area.
        ratio: least and greatest height / width.
        value: what is written: a number, one for each channel, or "random" for normal numbers.
        inplace: whether the image itself is changed.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        self.scale = numbers("RandomErasing", "scale", scale, (2,))
        self.ratio = numbers("RandomErasing", "ratio", ratio, (2,))
        if not 0 <= self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"RandomErasing: argument 'scale' is {scale!r}, expected shares from 0 to 1")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise ValueError(f"RandomErasing: argument 'ratio' is {ratio!r}, expected 0 < least <= greatest")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: argument 'value' is {value!r}, expected numbers or 'random'")
        self.value, self.inplace = value, inplace

    def change(self, image: Any) -> Any:
        channels, height, width = image.shape[-3:]
        low, high = (math.log(r) for r in self.ratio)
        for _ in range(10):
            area, aspect = height * width * uniform(*self.scale), math.exp(uniform(low, high))
            rows, columns = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < rows < height and 0 < columns < width:
                top, left = integer(0, height - rows + 1), integer(0, width - columns + 1)
                result = image if self.inplace else image.clone()
                result[..., top : top + rows, left : left + columns] = self._fill(
                    image, channels, rows, columns
                )
                return result
        return image

    def _fill(self, image: Any, channels: int, rows: int, columns: int) -> Any:
        if self.value == "random":
            return tensor.randn(channels, rows, columns).to(image.device, image.dtype)
        values = tensor.tensor(self.value, dtype=image.dtype, device=image.device).reshape(-1, 1, 1)
        if values.shape[0] not in (1, channels):
            raise ValueError(f"RandomErasing: found {channels} channels, expected {values.shape[0]}")
        return values
