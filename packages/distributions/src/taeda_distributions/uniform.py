"""The uniform distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Uniform"]


class Uniform(Parameterized):
    """Uniform distribution of ``[low, high)``.

    Args:
        low: Lower limit.
        high: Upper limit, above it.
        validate_args: Check parameters and values.

    Raises:
        ValueError: `low` is not below `high`.

    Example:
        >>> Uniform(0.0, 4.0).mean
        tensor(2.)
    """

    has_rsample = True
    _parameter_dims: ClassVar = {"low": 0, "high": 0}

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        batch = () if isinstance(low, Number) and isinstance(high, Number) else self.low.shape
        super().__init__(batch, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return tensor.full_like(self.high, float("nan"))

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        uniform = tensor.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + uniform * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return tensor.log(inside.to(self.low.dtype)) - tensor.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return tensor.log(self.high - self.low)
