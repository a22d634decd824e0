"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.gamma import Gamma
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import PowerTransform
from taeda_registry.slots import tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Distribution of 1/x for x of a gamma distribution.

    Args:
        concentration: Shape, positive.
        rate: 1 / scale of the gamma distribution, positive.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> Any:
        """Shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """1 / scale of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        result = self.rate / (self.concentration - 1)
        return tensor.where(self.concentration > 1, result, tensor.full_like(result, math.inf))

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return tensor.where(self.concentration > 2, result, tensor.full_like(result, math.inf))

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
