"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import either, two_ways
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import broadcast_all, clamp_probs, softplus
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
            if validate_args and not bool(self.arg_constraints["probs"].check(self._param).all()):
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

    def _cut(self) -> Any:
        """p where it is away from one half, a number away from it elsewhere."""
        return tensor.where(self._away(), self.probs, self._lims[0] * tensor.ones_like(self.probs))

    def _log_normalizing(self) -> Any:
        """log of the constant; by Taylor's series near one half."""
        cut = self._cut()
        low = tensor.where(cut <= 0.5, cut, tensor.zeros_like(cut))
        high = tensor.where(cut >= 0.5, cut, tensor.ones_like(cut))
        distance = tensor.where(cut <= 0.5, tensor.log1p(-2.0 * low), tensor.log(2.0 * high - 1.0))
        exact = tensor.log((tensor.log1p(-cut) - tensor.log(cut)).abs()) - distance
        x = (self.probs - 0.5).pow(2)
        return tensor.where(self._away(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        cut = self._cut()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (tensor.log1p(-cut) - tensor.log(cut))
        x = self.probs - 0.5
        return tensor.where(self._away(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        cut = self._cut()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (
            tensor.log1p(-cut) - tensor.log(cut)
        ).pow(2)
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
        cut = self._cut()
        exact = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = tensor.where(self._away(), exact, value)
        inside = tensor.where(value <= 0.0, tensor.zeros_like(value), inside)
        return tensor.where(value >= 1.0, tensor.ones_like(value), inside)

    def icdf(self, value: Any) -> Any:
        cut = self._cut()
        exact = (tensor.log1p(-cut + value * (2.0 * cut - 1.0)) - tensor.log1p(-cut)) / (
            tensor.log(cut) - tensor.log1p(-cut)
        )
        return tensor.where(self._away(), exact, value)

    def entropy(self) -> Any:
        log_probs0, log_probs1 = tensor.log1p(-self.probs), tensor.log(self.probs)
        return self.mean * (log_probs0 - log_probs1) - self._log_normalizing() - log_probs0

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        away = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = tensor.where(away, x, (self._lims[0] - 0.5) * tensor.ones_like(x))
        exact = tensor.log(tensor.special.expm1(cut).abs()) - tensor.log(cut.abs())
        return tensor.where(away, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
