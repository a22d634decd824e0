"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import either, two_ways
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import all_true, broadcast_all, clamp_probs, softplus
from taeda_registry.slots import tensor

__all__ = ["ContinuousBernoulli"]


@two_ways("probs", "logits", is_binary=True)
class ContinuousBernoulli(ExponentialFamily):
    """Density p**x (1 - p)**(1 - x) on [0, 1], normalized.

    "The continuous Bernoulli" (Loaiza-Ganem and Cunningham, 2019).

    Args:
        probs: p.
        logits: The logarithm of its odds, in its place.
        lims: Between these p counts as one half: the formulas have a removable singularity there.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parameter_dims: ClassVar = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        either(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        if probs is None:
            self.logits = self._param
        else:
            if validate_args and not all_true(self.arg_constraints["probs"].check(self._param)):
                raise ValueError("The parameter probs has invalid values")
            self._param = self.probs = clamp_probs(self._param)
        self._lims = lims
        super().__init__(() if isinstance(given, Number) else self._param.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param, new._lims = self._param.expand(tuple(batch_shape)), self._lims

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    def _away(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _below(self) -> Any:
        """Minus the logit's absolute value where p is away from one half, a number away from zero elsewhere.

        The formulas are those of p below one half: exponentials of it do not overflow, and the other half mirrors it.
        """
        elsewhere = math.log(self._lims[0] / (1.0 - self._lims[0])) * tensor.ones_like(self.logits)
        return tensor.where(self._away(), -self.logits.abs(), elsewhere)

    def _log_normalizing(self) -> Any:
        """log of the constant; by Taylor's series near one half."""
        below = self._below()
        exact = tensor.log(below / tensor.tanh(0.5 * below))
        x = (self.probs - 0.5).pow(2)
        return tensor.where(self._away(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    def _mean_below(self) -> Any:
        """The mean where p is replaced by the smaller of p and 1 - p."""
        below = self._below()
        exact = tensor.exp(below) / tensor.expm1(below) - 1.0 / below
        x = -(self.probs - 0.5).abs()
        return tensor.where(self._away(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    def _mirrored(self, of_below: Any) -> Any:
        """A number of the smaller of p and 1 - p as one of p."""
        return tensor.where(self.logits <= 0, of_below, 1.0 - of_below)

    @property
    def mean(self) -> Any:
        return self._mirrored(self._mean_below())

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        below = self._below()
        exact = 1.0 / below.pow(2) - tensor.exp(below) / tensor.expm1(below).pow(2)
        x = (self.probs - 0.5).pow(2)
        return tensor.where(self._away(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(tensor.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - softplus(logits) + self._log_normalizing()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        below = self._below()
        exact = self._mirrored(tensor.expm1(below * self._mirrored(value)) / tensor.expm1(below))
        inside = tensor.where(self._away(), exact, value)
        inside = tensor.where(value <= 0.0, tensor.zeros_like(inside), inside)
        return tensor.where(value >= 1.0, tensor.ones_like(inside), inside)

    def icdf(self, value: Any) -> Any:
        below, part = self._below(), self._mirrored(value)
        exact = tensor.logaddexp(tensor.log1p(-part), tensor.log(part) + below) / below
        return tensor.where(self._away(), self._mirrored(exact), value)

    def entropy(self) -> Any:
        below = -self.logits.abs()
        return softplus(below) - self._mean_below() * below - self._log_normalizing()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        away = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = tensor.where(away, x, (self._lims[0] - 0.5) * tensor.ones_like(x))
        exact = cut.clamp(min=0) + tensor.log(tensor.expm1(-cut.abs()) / -cut.abs())
        return tensor.where(away, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
