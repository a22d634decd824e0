"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.chi2 import Chi2
from taeda_distributions.distribution import Parameterized
from taeda_distributions.utils import broadcast_all, standard_normal
from taeda_registry.slots import tensor

__all__ = ["StudentT"]


class StudentT(Parameterized):
    """Student's t distribution.

    Args:
        df: Degrees of freedom, positive.
        loc: Median.
        scale: Scale, positive.
        validate_args: Check parameters and values.

    Example:
        >>> StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _parameter_dims: ClassVar = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(self.df.shape, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        return tensor.where(self.df > 1, self.loc, tensor.full_like(self.loc, math.nan))

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        other = tensor.where(
            self.df > 1, tensor.full_like(self.df, math.inf), tensor.full_like(self.df, math.nan)
        )
        return tensor.where(self.df > 2, finite, other)

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * normal * tensor.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + tensor.lgamma(0.5 * self.df)
            - tensor.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * tensor.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        log_beta = tensor.lgamma(0.5 * self.df) + math.lgamma(0.5) - tensor.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (tensor.digamma(0.5 * (self.df + 1)) - tensor.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + log_beta
        )
