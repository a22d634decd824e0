"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.exponential import Exponential
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.transforms import AffineTransform, PowerTransform
from taeda_distributions.utils import EULER, batch_of, broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull distribution.

    Args:
        scale: Scale, positive.
        concentration: Shape, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Weibull(1.0, 1.0).mean
        tensor(1.)
    """

    arg_constraints: ClassVar = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(tensor.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        shape = tuple(batch_of(batch_shape))
        new.scale, new.concentration = self.scale.expand(shape), self.concentration.expand(shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        new = super().expand(batch_shape, _instance=new)
        new.transforms = new._steps()
        return new

    def _moment(self, n: int) -> Any:
        return tensor.exp(tensor.lgamma(1 + n * self.concentration_reciprocal))

    @property
    def mean(self) -> Any:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Any:
        c = self.concentration
        return self.scale * (((c - 1) / c).clamp(min=0)) ** c.reciprocal()

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Any:
        return (
            EULER * (1 - self.concentration_reciprocal)
            + tensor.log(self.scale * self.concentration_reciprocal)
            + 1
        )
