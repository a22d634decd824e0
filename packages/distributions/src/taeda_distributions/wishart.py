"""The Wishart distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from taeda_distributions import constraints
from taeda_distributions._matrices import OfOneMatrix, _aligned, half_log_det
from taeda_distributions.chi2 import Chi2
from taeda_distributions.distribution import Distribution
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.utils import (
    any_true,
    batch_of,
    multivariate_digamma,
    multivariate_lgamma,
)
from taeda_registry.slots import tensor

__all__ = ["Wishart"]


class Wishart(OfOneMatrix, ExponentialFamily):
    """Distribution of positive definite matrices: sums of outer products of normal vectors.

    Args:
        df: Degrees of freedom, above the size of the matrices less 1.
        covariance_matrix: Of the vectors, positive definite.
        precision_matrix: Its inverse, in its place.
        scale_tril: Its lower Cholesky factor, in its place.
        validate_args: Check parameters and values.

    Example:
        >>> Wishart(taeda.tensor(4.0), taeda.eye(2)).mean
        tensor([[4., 0.],
                [0., 4.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }  # fmt: skip

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        if isinstance(df, Number):
            df = tensor.tensor(float(df), dtype=matrix.dtype, device=matrix.device)
        batch = tuple(tensor.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape)))
        event = tuple(matrix.shape[-2:])
        self.df = df.expand(batch)
        setattr(self, name, matrix.expand((*batch, *event)))
        if any_true(self.df <= event[-1] - 1):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        self._event_shape = batch_of(event)
        super().__init__(batch, event, validate_args=validate_args)
        self._factor(name, matrix)
        self._dist_chi2 = self._rows(self.df)

    def _rows(self, df: Any) -> Any:
        """Squared diagonal elements of Bartlett's factor."""
        steps = tensor.arange(self._event_shape[-1], dtype=df.dtype, device=df.device)
        return Chi2(df.unsqueeze(-1) - steps)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = batch_of(batch_shape)
        new.df = self.df.expand(tuple(batch_shape))
        new._event_shape = self._event_shape
        self._expand_matrix_of(new, batch_shape)
        new._dist_chi2 = new._rows(new.df)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Any:
        return self.df.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = tensor.where(factor > 0, factor, tensor.full_like(factor, math.nan))
        return factor.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.reshape((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def rsample(self, sample_shape: Any = (), max_try_correction: Any = None) -> Any:
        return self._bartlett_sampling(sample_shape)

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        """Samples by Bartlett's decomposition, products of triangles with roots of chi-squared numbers."""
        diagonal = self._dist_chi2.rsample(sample_shape)
        diagonal = diagonal.clamp(min=tensor.finfo(diagonal.dtype).tiny).sqrt()
        shape = tuple(self._extended_shape(sample_shape))
        below = tensor.randn(shape, dtype=diagonal.dtype, device=diagonal.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        lower = self._unbroadcasted_scale_tril
        inner = tensor.linalg.solve_triangular(*_aligned(lower, value), upper=False)
        inner = tensor.linalg.solve_triangular(*_aligned(lower.mT, inner), upper=True)
        trace = inner.diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * math.log(2) / 2 + half_log_det(lower))
            - multivariate_lgamma(nu / 2, p)
            + (nu - p - 1) / 2 * tensor.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + multivariate_lgamma(nu / 2, p)
            - (nu - p - 1) / 2 * multivariate_digamma(nu / 2, p)
            + p * nu / 2
        )

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        p = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - p - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-tensor.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + multivariate_lgamma(
            half, p
        )
