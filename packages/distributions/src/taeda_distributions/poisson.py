"""The Poisson distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Poisson distribution.

    Args:
        rate: Mean, not negative.
        validate_args: Check parameters and values.

    Example:
        >>> Poisson(4.0).variance
        tensor(4.)
    """

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameter_dims: ClassVar = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(() if isinstance(rate, Number) else self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            return tensor.poisson(self.rate.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return tensor.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (tensor.log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return tensor.exp(x)
