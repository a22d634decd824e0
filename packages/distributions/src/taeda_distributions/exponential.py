"""The exponential distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Exponential distribution.

    Args:
        rate: 1 / mean, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Exponential(2.0).mean
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameter_dims: ClassVar = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(() if isinstance(rate, Number) else self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return tensor.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = tensor.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_()
        return drawn / self.rate

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - tensor.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -tensor.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - tensor.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Any) -> Any:
        return -tensor.log(-x)
