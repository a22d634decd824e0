"""The geometric distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized, either, two_ways
from taeda_distributions.utils import all_true, broadcast_all, softplus, tiny
from taeda_registry.slots import tensor

__all__ = ["Geometric"]


@two_ways("probs", "logits", is_binary=True)
class Geometric(Parameterized):
    """Number of failures before the first success.

    Args:
        probs: Probability of success, above 0.
        logits: The logarithm of its odds, in its place.
        validate_args: Check parameters and values.

    Example:
        >>> Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameter_dims: ClassVar = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        either(probs, logits)
        given = logits if probs is None else probs
        (value,) = broadcast_all(given)
        setattr(self, "logits" if probs is None else "probs", value)
        super().__init__(() if isinstance(given, Number) else value.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not all_true(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs of distribution {self!r} to be positive but found invalid "
                f"values:\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return tensor.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        with tensor.no_grad():
            uniform = tensor.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
            return (uniform.clamp(min=tiny(self.probs.dtype)).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        sure = (probs == 1) & (value == 0)
        probs = tensor.where(sure, tensor.zeros_like(probs), probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return (softplus(self.logits) - self.logits * self.probs) / self.probs
