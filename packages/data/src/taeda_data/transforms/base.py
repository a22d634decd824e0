"""What transforms share: chance, checks of their arguments, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taeda_registry.slots import tensor


class Transform:
    """A callable that is shown with the arguments it was made with."""

    def __call__(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__call__ is not defined")

    def __repr__(self) -> str:
        facts = ", ".join(f"{key}={value!r}" for key, value in vars(self).items() if not key.startswith("_"))
        return f"{type(self).__name__}({facts})"


class RandomTransform(Transform):
    """Applies `change` with probability ``p``."""

    def __init__(self, p: float) -> None:
        self.p = probability(type(self).__name__, p)

    def __call__(self, image: Any) -> Any:
        return self.change(image_of(self, image)) if chance() < self.p else image

    def change(self, image: Any) -> Any:
        """What is done to an image when it is done."""
        raise NotImplementedError(f"{type(self).__name__}.change is not defined")


def image_of(transform: Transform, image: Any) -> Any:
    """``image``, if it is a tensor of at least three dimensions.

    Raises:
        TypeError: it is none; images of Pillow and arrays become one by `ToImage`.
        ValueError: it has fewer dimensions.
    """
    name = type(transform).__name__
    if not isinstance(image, tensor.Tensor):
        raise TypeError(
            f"{name}: found an image of type {type(image).__name__}, expected a tensor; see ToImage"
        )
    if image.ndim < 3:
        raise ValueError(f"{name}: found an image of shape {tuple(image.shape)}, expected (..., C, H, W)")
    return image


def probability(name: str, p: float) -> float:
    """``p``, if it is one."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: argument 'p' is {p}, expected a number from 0 to 1")
    return p


def pair(name: str, argument: str, value: Any) -> tuple[int, int]:
    """An int for both, or height and width.

    Raises:
        ValueError: anything else, or no positive numbers.
    """
    values = (value, value) if isinstance(value, int) else tuple(value)
    if len(values) == 1:
        values = values * 2
    if len(values) != 2 or any(not isinstance(v, int) or v <= 0 for v in values):
        raise ValueError(
            f"{name}: argument {argument!r} is {value!r}, expected a positive int or (height, width)"
        )
    return values  # type: ignore[return-value]


def chance() -> float:
    """A number from [0, 1)."""
    return float(tensor.rand(()))


def uniform(low: float, high: float) -> float:
    """A number from [low, high)."""
    return low + (high - low) * chance()


def integer(low: int, high: int) -> int:
    """One of low, ..., high - 1."""
    return int(tensor.randint(low, high, ()))


def limits(dtype: Any) -> np.iinfo[Any]:
    """The range of an integer dtype, which has NumPy's name in every tensor library."""
    return np.iinfo(str(dtype).rpartition(".")[2])


def whole(image: Any) -> float:
    """The greatest value of an image's dtype: 1 for floating-point numbers."""
    return 1.0 if image.is_floating_point() else float(limits(image.dtype).max)


def computed(image: Any, change: Callable[[Any], Any]) -> Any:
    """``change`` made in floating point; integers are rounded and held within the range of their dtype."""
    if image.is_floating_point():
        return change(image)
    result = change(image.to(tensor.float32))
    return result.round().clamp(float(limits(image.dtype).min), whole(image)).to(image.dtype)


def numbers(name: str, argument: str, value: Any, count: Sequence[int]) -> tuple[float, ...]:
    """A number or a sequence of as many finite ones as ``count`` allows."""
    values = (value,) if isinstance(value, (int, float)) else tuple(value)
    if len(values) not in count or not all(math.isfinite(v) for v in values):
        wanted = " or ".join(str(n) for n in count)
        raise ValueError(f"{name}: argument {argument!r} is {value!r}, expected {wanted} finite numbers")
    return values
