"""The gamma distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions._gamma_gradient import standard_gamma
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import broadcast_all, tiny
from taeda_registry.slots import tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Gamma distribution.

    Args:
        concentration: Shape, positive.
        rate: 1 / scale, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Gamma(2.0, 4.0).mean
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameter_dims: ClassVar = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        batch = () if isinstance(concentration, Number) and isinstance(rate, Number) else self.rate.shape
        super().__init__(batch, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return value.clamp(min=tiny(value.dtype))

    def log_prob(self, value: Any) -> Any:
        value = tensor.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            tensor.xlogy(self.concentration, self.rate)
            + tensor.xlogy(self.concentration - 1, value)
            - self.rate * value
            - tensor.lgamma(self.concentration)
        )

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return tensor.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return tensor.lgamma(x + 1) - (x + 1) * tensor.log(-y)
