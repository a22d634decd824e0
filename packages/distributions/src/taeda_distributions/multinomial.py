"""The multinomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.binomial import Binomial
from taeda_distributions.categorical import Categorical
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import batch_of, broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes in a number of draws.

    Args:
        total_count: The number of draws, one for the whole batch.
        probs: Weights of the categories, along the last dimension.
        logits: Their logarithms, in their place.
        validate_args: Check parameters and values.

    Example:
        >>> Multinomial(10, taeda.tensor([0.5, 0.5])).sample().sum()
        tensor(10.)
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(
            self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = batch_of(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new._categorical.probs)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        draws = self._categorical.sample((self.total_count, *sample_shape))
        draws = draws.permute((*range(1, draws.dim()), 0))
        counts = tensor.zeros(
            tuple(self._extended_shape(sample_shape)), dtype=self.probs.dtype, device=self.probs.device
        )
        return counts.scatter_add(-1, draws, tensor.ones_like(draws, dtype=counts.dtype))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        impossible = (value == 0) & (logits == -float("inf"))
        logits = tensor.where(impossible, tensor.zeros_like(logits), logits)
        ways = tensor.lgamma(value.sum(-1) + 1) - tensor.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = tensor.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = tensor.exp(self._binomial.log_prob(support))
        spread = (weights * tensor.lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - tensor.lgamma(n + 1) + spread
