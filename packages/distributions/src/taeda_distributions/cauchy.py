"""The Cauchy distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Cauchy"]


class Cauchy(Parameterized):
    """Cauchy distribution, which has no mean.

    Args:
        loc: Median.
        scale: Half width at half maximum, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Cauchy(0.0, 1.0).cdf(taeda.tensor(0.0))
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameter_dims: ClassVar = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        batch = () if isinstance(loc, Number) and isinstance(scale, Number) else self.loc.shape
        super().__init__(batch, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return tensor.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return tensor.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = tensor.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).pow(2).log1p()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return tensor.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return tensor.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
