"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Parameterized):
    """Generalized Pareto distribution, of excesses over a threshold.

    Args:
        loc: The threshold.
        scale: Scale, positive.
        concentration: Shape: 0 is the exponential distribution, below it the values are bounded.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True
    _parameter_dims: ClassVar = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        numbers = all(isinstance(value, Number) for value in (loc, scale, concentration))
        super().__init__(() if numbers else self.loc.shape, validate_args=validate_args)

    def _flat(self) -> tuple[Any, Any]:
        """Where the shape is 0, and a shape that is not."""
        flat = tensor.isclose(self.concentration, tensor.zeros_like(self.concentration))
        return flat, tensor.where(flat, tensor.ones_like(self.concentration), self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = self.loc - self.scale / self.concentration
        return _Above(
            self.loc, tensor.where(self.concentration < 0, upper, tensor.full_like(upper, math.inf))
        )

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(tensor.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        flat, shape = self._flat()
        bent = tensor.where(flat, tensor.zeros_like(y), shape * y)
        exponent = tensor.where(flat, y, (1 + 1 / shape) * bent.log1p())
        return -self.scale.log() - exponent

    def log_survival_function(self, value: Any) -> Any:
        """Logarithm of the probability of values above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        flat, shape = self._flat()
        bent = tensor.where(flat, tensor.zeros_like(y), shape * y)
        return tensor.where(flat, -y, -bent.log1p() / shape)

    def log_cdf(self, value: Any) -> Any:
        """Logarithm of the probability of values up to `value`."""
        return (-tensor.expm1(self.log_survival_function(value))).log()

    def cdf(self, value: Any) -> Any:
        return -tensor.expm1(self.log_survival_function(value))

    def icdf(self, value: Any) -> Any:
        log_left = (-value).log1p()
        flat, shape = self._flat()
        bent = tensor.expm1(-shape * log_left) / shape
        return self.loc + self.scale * tensor.where(flat, -log_left, bent)

    @property
    def mean(self) -> Any:
        mean = self.loc + self.scale / (1 - self.concentration)
        return tensor.where(self.concentration < 1, mean, tensor.full_like(mean, math.inf))

    @property
    def variance(self) -> Any:
        c = self.concentration
        variance = self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c))
        return tensor.where(c < 0.5, variance, tensor.full_like(variance, math.inf))

    @property
    def mode(self) -> Any:
        return self.loc

    def entropy(self) -> Any:
        return (self.scale.log() + self.concentration + 1).expand(tuple(self._batch_shape))


class _Above(constraints._Interval):
    """Values between limits of which the upper one may be infinite."""
