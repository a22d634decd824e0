"""Transforms made of transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from taeda_data.transforms.base import RandomTransform, Transform, chance, probability
from taeda_registry.slots import tensor


class Identity(Transform):
    """Gives back what it gets."""

    def __call__(self, image: Any) -> Any:
        return image


class Lambda(Transform):
    """A function as a transform.

    Args:
        lambd: the function. Worker processes that are spawned need one that can be pickled, so no lambda.
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda: argument 'lambd' is {type(lambd).__name__}, expected a callable")
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class _Several(Transform):
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)
        wrong = next((t for t in self.transforms if not callable(t)), None)
        if wrong is not None:
            raise TypeError(
                f"{type(self).__name__}: argument 'transforms' holds {wrong!r}, expected callables"
            )


class Compose(_Several):
    """Transforms one after another.

    Example:
        >>> Compose([Resize(32), ToDtype(taeda.float32, scale=True)])(image)
    """

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomApply(RandomTransform):
    """All of ``transforms`` with probability ``p``, else none."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        super().__init__(p)
        self.transforms = Compose(transforms).transforms

    def __call__(self, image: Any) -> Any:
        return Compose(self.transforms)(image) if chance() < self.p else image


class RandomChoice(_Several):
    """One of ``transforms``.

    Args:
        transforms: one or more.
        p: how likely each is, in any unit; by default all alike.
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if not self.transforms:
            raise ValueError("RandomChoice: argument 'transforms' is empty")
        weights = [1.0] * len(self.transforms) if p is None else [float(w) for w in p]
        if len(weights) != len(self.transforms) or min(weights) < 0 or sum(weights) <= 0:
            raise ValueError(
                f"RandomChoice: argument 'p' is {p!r}, expected {len(self.transforms)} numbers that are not negative"
            )
        self.p = [probability("RandomChoice", w / sum(weights)) for w in weights]

    def __call__(self, image: Any) -> Any:
        place = tensor.tensor(self.p, dtype=tensor.float64).cumsum(0) <= chance()
        return self.transforms[min(int(place.sum()), len(self.transforms) - 1)](image)


class RandomOrder(_Several):
    """All of ``transforms`` in random order."""

    def __call__(self, image: Any) -> Any:
        for place in tensor.randperm(len(self.transforms)).tolist():
            image = self.transforms[place](image)
        return image
