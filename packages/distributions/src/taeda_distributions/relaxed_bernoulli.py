"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized, either, two_ways
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import SigmoidTransform
from taeda_distributions.utils import broadcast_all, clamp_probs, softplus
from taeda_registry.slots import tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


@two_ways("probs", "logits", is_binary=True)
class LogitRelaxedBernoulli(Parameterized):
    """Logits of the relaxed Bernoulli distribution ("The concrete distribution", Maddison et al., 2017).

    Args:
        temperature: Positive; small ones bring values near 0 and 1.
        probs: The probability.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _parameter_dims: ClassVar = {"probs": 0, "logits": 0}

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        either(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        setattr(self, "logits" if probs is None else "probs", self._param)
        super().__init__(() if isinstance(given, Number) else self._param.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param, new.temperature = self._param.expand(tuple(batch_shape)), self.temperature

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(tensor.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        temperature = tensor.as_tensor(self.temperature, dtype=difference.dtype, device=difference.device)
        return temperature.log() + difference - 2 * softplus(difference)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that are nearly always near one of them.

    Args:
        temperature: Positive; small ones bring values near 0 and 1.
        probs: The probability of 1.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithm of the odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self.base_dist.probs
