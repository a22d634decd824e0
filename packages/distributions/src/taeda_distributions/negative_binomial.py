"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized, either, two_ways
from taeda_distributions.gamma import Gamma
from taeda_distributions.utils import broadcast_all, lazy_property, softplus
from taeda_registry.slots import tensor

__all__ = ["NegativeBinomial"]


@two_ways("probs", "logits", is_binary=True)
class NegativeBinomial(Parameterized):
    """Number of successes before a number of failures.

    Args:
        total_count: The number of failures, which need not be whole.
        probs: Probability of success, below 1.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.

    Example:
        >>> NegativeBinomial(4, 0.5).mean
        tensor(4.)
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }  # fmt: skip
    support = constraints.nonnegative_integer
    _parameter_dims: ClassVar = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        either(probs, logits)
        self.total_count, self._param = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.to(self._param.dtype)
        setattr(self, "logits" if probs is None else "probs", self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param = self._param.expand(tuple(batch_shape))

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Any:
        return self.total_count * tensor.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / tensor.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        return Gamma(concentration=self.total_count, rate=tensor.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            return tensor.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        weight = -n * softplus(self.logits) - value * softplus(-self.logits)
        normalizer = -tensor.lgamma(n + value) + tensor.lgamma(1.0 + value) + tensor.lgamma(n)
        normalizer = tensor.where(n + value == 0.0, tensor.zeros_like(normalizer), normalizer)
        return weight - normalizer
