"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.normal import Normal
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Distribution of exp(x) for x of a normal distribution.

    Args:
        loc: Mean of x.
        scale: Standard deviation of x, positive.
        validate_args: Check parameters and values.

    Example:
        >>> LogNormal(0.0, 1.0).cdf(taeda.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(
            Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self) -> Any:
        """Mean of x."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of x."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
