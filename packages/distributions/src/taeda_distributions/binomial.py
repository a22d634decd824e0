"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized, either, two_ways
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Binomial"]


@two_ways("probs", "logits", is_binary=True)
class Binomial(Parameterized):
    """Number of successes in a number of tries.

    Args:
        total_count: The number of tries.
        probs: Probability of success.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.

    Example:
        >>> Binomial(10, 0.5).mean
        tensor(5.)
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True
    _parameter_dims: ClassVar = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        either(probs, logits)
        self.total_count, self._param = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.to(self._param.dtype)
        setattr(self, "logits" if probs is None else "probs", self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._param = self._param.expand(tuple(batch_shape))

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        mode = ((self.total_count + 1) * self.probs).floor()
        return tensor.minimum(mode, self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        with tensor.no_grad():
            return tensor.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = tensor.lgamma(n + 1) - tensor.lgamma(value + 1) - tensor.lgamma(n - value + 1)
        # n * log(1 + exp(logits)), without overflow.
        logits = self.logits
        positive = (
            logits.clamp(min=0) + logits - logits.clamp(max=0)
        ) / 2  # at 0 with half the slope, as it is
        normalizer = n * positive + n * (-logits.abs()).exp().log1p()
        return ways + value * logits - normalizer

    def entropy(self) -> Any:
        total = int(self.total_count.max())
        if int(self.total_count.min()) != total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = int(self.total_count.max())
        if int(self.total_count.min()) != total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = tensor.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((-1, *(1 for _ in self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
