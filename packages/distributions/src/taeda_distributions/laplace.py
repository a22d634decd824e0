"""The Laplace distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import broadcast_all
from taeda_registry.slots import tensor

__all__ = ["Laplace"]


class Laplace(Parameterized):
    """Laplace distribution.

    Args:
        loc: Mean.
        scale: Mean distance from it, positive.
        validate_args: Check parameters and values.

    Example:
        >>> Laplace(0.0, 1.0).variance
        tensor(2.)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameter_dims: ClassVar = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        batch = () if isinstance(loc, Number) and isinstance(scale, Number) else self.loc.shape
        super().__init__(batch, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        uniform = tensor.rand(shape, dtype=self.loc.dtype, device=self.loc.device) * 2 - 1
        # -1 would be infinitely far away.
        uniform = uniform.clamp(min=tensor.finfo(self.loc.dtype).eps - 1)
        return self.loc - self.scale * uniform.sign() * tensor.log1p(-uniform.abs())

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -tensor.log(2 * self.scale) - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * tensor.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * tensor.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + tensor.log(2 * self.scale)
