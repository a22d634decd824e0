"""The F distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Parameterized
from taeda_distributions.gamma import Gamma
from taeda_distributions.utils import broadcast_all, tiny
from taeda_registry.slots import tensor

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Parameterized):
    """Fisher's and Snedecor's F distribution.

    Args:
        df1: Degrees of freedom of the numerator, positive.
        df2: Those of the denominator, positive.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameter_dims: ClassVar = {"df1": 0, "df2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        batch = () if isinstance(df1, Number) and isinstance(df2, Number) else self.df1.shape
        super().__init__(batch, validate_args=validate_args)

    def _carry(self, new: Any, batch_shape: Any) -> None:
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        return tensor.where(self.df2 > 2, self.df2 / (self.df2 - 2), tensor.full_like(self.df2, math.nan))

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return tensor.where(self.df1 > 2, mode, tensor.full_like(mode, math.nan))

    @property
    def variance(self) -> Any:
        df2 = tensor.where(self.df2 > 4, self.df2, tensor.full_like(self.df2, math.nan))
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        first = self._gamma1.rsample(sample_shape).reshape(shape)
        second = self._gamma2.rsample(sample_shape).reshape(shape).clamp(min=tiny(self.df2.dtype))
        return (first / second).clamp(min=tiny(self.df2.dtype))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        return (
            (half1 + half2).lgamma()
            - half1.lgamma()
            - half2.lgamma()
            + half1 * ratio.log()
            + (half1 - 1) * value.log()
            - (half1 + half2) * tensor.log1p(ratio * value)
        )
