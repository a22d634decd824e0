"""|x| for x of a symmetric distribution around 0."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import AbsTransform
from taeda_registry.slots import tensor


class Folded(TransformedDistribution):
    """What such distributions of one scale have in common; `base` is the symmetric one."""

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, base: Any, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Any:
        """Scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return tensor.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = self._as_value(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return tensor.where(value >= 0, log_prob, tensor.full_like(log_prob, -math.inf))

    def _as_value(self, value: Any) -> Any:
        """The value as the density takes it."""
        return value

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
