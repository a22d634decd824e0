"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from taeda_distributions import constraints
from taeda_distributions.distribution import Distribution
from taeda_distributions.utils import HALF_LOG_2PI, batch_of, lazy_property, standard_normal
from taeda_registry.slots import tensor

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Any, vector: Any) -> Any:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(lower: Any, x: Any) -> Any:
    """x^T M^-1 x for M = L L^T."""
    solved = tensor.linalg.solve_triangular(*_aligned(lower, x.unsqueeze(-1)), upper=False)
    return solved.pow(2).sum((-2, -1))


def _aligned(matrix: Any, right: Any) -> tuple[Any, Any]:
    batch = tuple(tensor.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(right.shape[:-2])))
    return matrix.expand((*batch, *matrix.shape[-2:])), right.expand((*batch, *right.shape[-2:]))


def half_log_det(lower: Any) -> Any:
    """Half the logarithm of the determinant of L L^T."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def inverse_of(lower: Any) -> Any:
    """The inverse of L L^T."""
    eye = tensor.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device).expand(tuple(lower.shape))
    inverse = tensor.linalg.solve_triangular(lower, eye, upper=False)
    return inverse.mT @ inverse


def _precision_to_scale_tril(precision: Any) -> Any:
    reversed_lower = tensor.linalg.cholesky(precision.flip((-2, -1)))
    upper = reversed_lower.flip((-2, -1)).mT
    eye = tensor.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return tensor.linalg.solve_triangular(*_aligned(upper, eye), upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors, with one of three parameters for how their elements depend on each other.

    Args:
        loc: Mean, along the last dimension.
        covariance_matrix: Positive definite.
        precision_matrix: Its inverse, in its place.
        scale_tril: Its lower Cholesky factor, in its place; nothing has to be factored then.
        validate_args: Check parameters and values.

    Raises:
        ValueError: Not exactly one of the three is given, or one is no matrix.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _matrices = ("covariance_matrix", "precision_matrix", "scale_tril")

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            name: value
            for name, value in zip(
                self._matrices, (covariance_matrix, precision_matrix, scale_tril), strict=True
            )
            if value is not None
        }
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = tuple(tensor.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1])))
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = tensor.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = batch_of(batch_shape)
        new.loc = self.loc.expand((*batch_shape, *self.event_shape))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in self._matrices:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(
                    (*batch_shape, *self.event_shape, *self.event_shape)
                )
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _whole(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._whole(inverse_of(self._unbroadcasted_scale_tril))

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
