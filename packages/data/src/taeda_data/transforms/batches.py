"""Transforms of batches: samples mixed with each other, labels too."""

from __future__ import annotations

import math
from typing import Any

from taeda_data.transforms.base import Transform, image_of, integer
from taeda_registry.slots import tensor


class _Mixed(Transform):
    """Mixes a batch with itself, shifted by one sample.

    Args:
        alpha: of the Beta(alpha, alpha) distribution that the share of the first image is drawn from.
        num_classes: needed where labels are class numbers.
    """

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        if not alpha > 0:
            raise ValueError(
                f"{type(self).__name__}: argument 'alpha' is {alpha}, expected a positive number"
            )
        self.alpha, self.num_classes = alpha, num_classes

    def __call__(self, images: Any, labels: Any) -> tuple[Any, Any]:
        """Images (N, C, H, W) and labels (N,) ints or (N, classes): mixed images, and labels (N, classes)."""
        image_of(self, images)
        if images.ndim != 4 or labels.shape[0] != images.shape[0]:
            raise ValueError(
                f"{type(self).__name__}: found images of shape {tuple(images.shape)} and labels of shape "
                f"{tuple(labels.shape)}, expected (N, C, H, W) and N labels"
            )
        mixed, share = self.mix(images, images.roll(1, 0), self._share())
        shares = self._spread(labels)
        return mixed, shares * share + shares.roll(1, 0) * (1.0 - share)

    def mix(self, images: Any, others: Any, share: float) -> tuple[Any, float]:
        """Mixed images, and the share of the first ones in them."""
        raise NotImplementedError(f"{type(self).__name__}.mix is not defined")

    def _share(self) -> float:
        """A draw of Beta(alpha, alpha), as X / (X + Y) of two Gamma(alpha) ones."""
        draws = tensor.tensor([_gamma(self.alpha), _gamma(self.alpha)], dtype=tensor.float64)
        return float(draws[0] / draws.sum())

    def _spread(self, labels: Any) -> Any:
        if labels.is_floating_point():
            return labels
        if self.num_classes is None:
            raise ValueError(
                f"{type(self).__name__}: argument 'num_classes' is needed for labels that are numbers"
            )
        places = tensor.arange(self.num_classes, device=labels.device)
        return (labels.reshape(-1, 1) == places).to(tensor.float32)


class MixUp(_Mixed):
    """Weighted means of images (Zhang et al. 2018, "mixup: Beyond empirical risk minimization")."""

    def mix(self, images: Any, others: Any, share: float) -> tuple[Any, float]:
        return images * share + others * (1.0 - share), share


class CutMix(_Mixed):
    """A rectangle of each image replaced by that of another (Yun et al. 2019)."""

    def mix(self, images: Any, others: Any, share: float) -> tuple[Any, float]:
        height, width = images.shape[-2:]
        half = 0.5 * math.sqrt(1.0 - share)
        row, column = integer(0, height), integer(0, width)
        top, bottom = max(int(row - half * height), 0), min(int(row + half * height), height)
        left, right = max(int(column - half * width), 0), min(int(column + half * width), width)
        mixed = images.clone()
        mixed[..., top:bottom, left:right] = others[..., top:bottom, left:right]
        return mixed, 1.0 - (bottom - top) * (right - left) / (height * width)


def _gamma(alpha: float) -> float:
    """A draw of Gamma(alpha) (Marsaglia, Tsang 2000)."""
    if alpha < 1:
        return _gamma(alpha + 1) * (1.0 - float(tensor.rand((), dtype=tensor.float64))) ** (1 / alpha)
    d = alpha - 1 / 3
    while True:
        x = float(tensor.randn((), dtype=tensor.float64))
        v = (1 + x / math.sqrt(9 * d)) ** 3
        u = 1.0 - float(tensor.rand((), dtype=tensor.float64))
        if v > 0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v
