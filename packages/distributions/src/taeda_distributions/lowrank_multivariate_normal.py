"""Multivariate normal distributions whose covariance is a diagonal and few directions."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions._matrices import (
    _aligned,
    _batch_mahalanobis,
    _batch_mv,
    half_log_det,
)
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import HALF_LOG_2PI, batch_of, lazy_property, standard_normal
from taeda_registry.slots import tensor

__all__ = ["LowRankMultivariateNormal"]


def _capacitance_tril(factor: Any, diagonal: Any) -> Any:
    """Cholesky factor of I + W^T D^-1 W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    inner = scaled @ factor
    return tensor.linalg.cholesky(inner + tensor.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device))


def _log_det(diagonal: Any, capacitance: Any) -> Any:
    """By the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + diagonal.log().sum(-1)


def _mahalanobis(factor: Any, diagonal: Any, x: Any, capacitance: Any) -> Any:
    """By Woodbury's identity."""
    projected = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - _batch_mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance W W^T + D; nothing of the size of the whole matrix is factored.

    Args:
        loc: Mean, along the last dimension.
        cov_factor: W, of shape (..., n, rank).
        cov_diag: The diagonal of D, positive.
        validate_args: Check parameters and values.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = tuple(loc.shape[-1:])
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if tuple(cov_factor.shape[-2:-1]) != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if tuple(cov_diag.shape[-1:]) != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = tuple(
            tensor.broadcast_shapes(
                tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1])
            )
        )
        self.loc, self.cov_diag = loc.expand((*batch, *event)), cov_diag.expand((*batch, *event))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = batch_of(batch_shape)
        shape = (*batch_shape, *self.event_shape)
        new.loc, new.cov_diag = self.loc.expand(shape), self.cov_diag.expand(shape)
        new.cov_factor = self.cov_factor.expand((*shape, self.cov_factor.shape[-1]))
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The variance of each element."""
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand((*self._batch_shape, *self._event_shape))

    def _whole(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._whole(tensor.linalg.cholesky(self.covariance_matrix))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._whole(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        inner = tensor.linalg.solve_triangular(*_aligned(self._capacitance_tril, scaled), upper=False)
        return self._whole(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - inner.mT @ inner)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        few = (*shape[:-1], self.cov_factor.shape[-1])
        along = standard_normal(few, self.loc.dtype, self.loc.device)
        alone = standard_normal(shape, self.loc.dtype, self.loc.device)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, along)
            + self._unbroadcasted_cov_diag.sqrt() * alone
        )

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = _mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        log_det = _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -0.5 * (log_det + distance) - self._event_shape[0] * HALF_LOG_2PI

    def entropy(self) -> Any:
        log_det = _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        entropy = self._event_shape[0] * (0.5 + HALF_LOG_2PI) + 0.5 * log_det
        return entropy.expand(tuple(self._batch_shape))
