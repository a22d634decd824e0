"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.beta import Beta
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import batch_of, broadcast_all, multivariate_lgamma, tiny
from taeda_registry.slots import tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices with density proportional to their determinant's power.

    "Generating random correlation matrices based on vines and extended onion method" (Lewandowski, Kurowicka, Joe,
    2009); samples by the onion method.

    Args:
        dim: Size of the matrices, at least 2.
        concentration: Positive; 1 is uniform over correlation matrices.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        self._beta = self._rows(self.concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def _rows(self, concentration: Any) -> Any:
        """Squared lengths of the rows below the diagonal."""
        marginal = concentration + 0.5 * (self.dim - 2)
        offset = tensor.arange(self.dim - 1, dtype=concentration.dtype, device=concentration.device)
        offset = tensor.cat([offset.new_zeros((1,)), offset])
        return Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = batch_of(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(tuple(batch_shape))
        new._beta = self._beta.expand((*batch_shape, self.dim))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        with tensor.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = tuple(self._extended_shape(sample_shape))
            direction = tensor.randn(shape, dtype=length.dtype, device=length.device).tril(-1)
            norm = direction.pow(2).sum(-1, keepdim=True).sqrt().clamp(min=tiny(length.dtype))
            first = tensor.arange(self.dim, device=length.device).unsqueeze(-1) == 0
            w = tensor.where(first, tensor.zeros_like(direction), length.sqrt() * (direction / norm))
            rest = (1 - w.pow(2).sum(-1)).clamp(min=tiny(w.dtype)).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = tensor.arange(
            2, self.dim + 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        denominator = tensor.lgamma(alpha) * below
        numerator = multivariate_lgamma(alpha - 0.5, below)
        normalizer = 0.5 * below * math.log(math.pi) + numerator - denominator
        return unnormalized - normalizer
