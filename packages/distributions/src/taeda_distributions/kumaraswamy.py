"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import AffineTransform, PowerTransform
from taeda_distributions.uniform import Uniform
from taeda_distributions.utils import EULER, batch_of, broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution on [0, 1], much like the beta distribution.

    Args:
        concentration1: Called alpha, positive.
        concentration0: Called beta, positive.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero, one = tensor.zeros_like(self.concentration0), tensor.ones_like(self.concentration0)
        super().__init__(
            Uniform(zero, one, validate_args=validate_args), self._steps(), validate_args=validate_args
        )

    def _steps(self) -> list[Any]:
        return [
            PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]  # fmt: skip

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        shape = tuple(batch_of(batch_shape))
        new.concentration1 = self.concentration1.expand(shape)
        new.concentration0 = self.concentration0.expand(shape)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Any:
        a, b = self.concentration1, self.concentration0
        r = 1 + n / a
        return b * (tensor.lgamma(r) + tensor.lgamma(b) - tensor.lgamma(r + b)).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ~((a == 1) & (b == 1))
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return tensor.where(inside, mode, tensor.full_like(mode, math.nan))

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = tensor.digamma(b + 1) + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
