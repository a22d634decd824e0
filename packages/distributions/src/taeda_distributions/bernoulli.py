"""The Bernoulli distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import either, two_ways
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import broadcast_all, softplus
from taeda_registry.slots import tensor

__all__ = ["Bernoulli"]


@two_ways("probs", "logits", is_binary=True)
class Bernoulli(ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: The probability.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.

    Example:
        >>> Bernoulli(0.25).log_prob(taeda.tensor(1.0)).exp()
        tensor(0.2500)
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _parameter_dims: ClassVar = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        either(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        setattr(self, "logits" if probs is None else "probs", self._param)
        super().__init__(() if isinstance(given, Number) else self._param.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param = self._param.expand(tuple(batch_shape))

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return tensor.where(self.probs == 0.5, tensor.full_like(mode, math.nan), mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            return tensor.bernoulli(self.probs.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - softplus(logits)

    def entropy(self) -> Any:
        return softplus(self.logits) - self.logits * self.probs

    def enumerate_support(self, expand: bool = True) -> Any:
        values = tensor.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (tensor.special.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return tensor.log1p(tensor.exp(x))
