"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions._matrices import (
    OfOneMatrix,
    _batch_mahalanobis,
    _batch_mv,
    _precision_to_scale_tril,  # noqa: F401 (programs take it from here)
    half_log_det,
)
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import HALF_LOG_2PI, batch_of, standard_normal
from taeda_registry.slots import tensor

__all__ = ["MultivariateNormal"]


class MultivariateNormal(OfOneMatrix, Distribution):
    """Normal vectors, with one of three parameters for how their elements depend on each other.

    Args:
        loc: Mean, along the last dimension.
        covariance_matrix: Positive definite.
        precision_matrix: Its inverse, in its place.
        scale_tril: Its lower Cholesky factor, in its place; nothing has to be factored then.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Not exactly one of the three is given, or one is no matrix.

    Example:
        >>> MultivariateNormal(taeda.zeros(2), taeda.eye(2)).sample((3,)).shape
        Size([3, 2])
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._one_of(covariance_matrix, precision_matrix, scale_tril)
        batch = tuple(tensor.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1])))
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factor(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = batch_of(batch_shape)
        new.loc = self.loc.expand((*batch_shape, *self.event_shape))
        self._expand_matrix_of(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half = half_log_det(self._unbroadcasted_scale_tril)
        return -0.5 * distance - self._event_shape[0] * HALF_LOG_2PI - half

    def entropy(self) -> Any:
        half = half_log_det(self._unbroadcasted_scale_tril)
        entropy = self._event_shape[0] * (0.5 + HALF_LOG_2PI) + half
        return entropy.expand(tuple(self._batch_shape))
