"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.independent import Independent
from taeda_distributions.normal import Normal
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities made of normal vectors by breaking a stick.

    Args:
        loc: Means, along the last dimension.
        scale: Standard deviations, positive.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    def _normal(self) -> Any:
        return self.base_dist.base_dist if isinstance(self.base_dist, Independent) else self.base_dist

    @property
    def loc(self) -> Any:
        """Means."""
        return self._normal().loc

    @property
    def scale(self) -> Any:
        """Standard deviations."""
        return self._normal().scale
