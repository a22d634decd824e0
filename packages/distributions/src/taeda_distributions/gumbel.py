"""The Gumbel distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import AffineTransform, ExpTransform
from taeda_distributions.uniform import Uniform
from taeda_distributions.utils import EULER, batch_of, broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Gumbel distribution.

    Args:
        loc: Mode.
        scale: Scale, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Gumbel(0.0, 1.0).mean
        tensor(0.5772157)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = tensor.finfo(self.loc.dtype)
        if isinstance(loc, Number) and isinstance(scale, Number):
            base = Uniform(limits.tiny, 1 - limits.eps, validate_args=validate_args)
        else:
            low = tensor.full_like(self.loc, limits.tiny)
            base = Uniform(low, tensor.full_like(self.loc, 1 - limits.eps), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        ones = tensor.ones_like(self.scale)
        return [
            ExpTransform().inv, AffineTransform(0, -ones), ExpTransform().inv, AffineTransform(self.loc, -self.scale),
        ]  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        shape = tuple(batch_of(batch_shape))
        new.loc, new.scale = self.loc.expand(shape), self.scale.expand(shape)
        new = super().expand(batch_shape, _instance=new)
        new.transforms = new._steps()
        return new

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)
