"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions._gamma_gradient import standard_gamma
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import tiny
from taeda_registry.slots import tensor

__all__ = ["Dirichlet"]


def drawn(concentration: Any, generator: Any = None) -> Any:
    """A sample for each last dimension, by a generator or the default one."""
    dtype = concentration.dtype
    # In double: of small concentrations all parts are often below what float32 can tell from 0.
    parts = standard_gamma(concentration.double(), generator)
    parts = parts.clamp(min=tiny(parts.dtype))
    made = (parts / parts.sum(-1, keepdim=True)).to(dtype)
    # No part is nothing or all of it, however the quotient is rounded; gradients are those of the quotient.
    within = made.detach().clamp(tiny(dtype), 1 - tensor.finfo(dtype).eps / 2)
    return made + (within - made.detach())


class Dirichlet(ExponentialFamily):
    """Dirichlet distribution: probabilities that sum to 1.

    Samples are gamma samples divided by their sum, and gradients flow through these.

    Args:
        concentration: Positive, along the last dimension.
        validate_args: Check parameters and values.

    Example:
        >>> Dirichlet(taeda.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameter_dims: ClassVar = {"concentration": 1}

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return drawn(self.concentration.expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (
            tensor.xlogy(self.concentration - 1.0, value).sum(-1)
            + tensor.lgamma(self.concentration.sum(-1))
            - tensor.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Any:
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, keepdim=True)
        corner = tensor.ops.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1]).to(
            mode.dtype
        )
        return tensor.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            tensor.lgamma(self.concentration).sum(-1)
            - tensor.lgamma(total)
            - (k - total) * tensor.digamma(total)
            - ((self.concentration - 1.0) * tensor.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - tensor.lgamma(x.sum(-1))
