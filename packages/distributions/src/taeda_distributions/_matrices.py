"""Positive definite matrices as parameters: given in one of three ways, and used by their lower Cholesky factor."""

from __future__ import annotations

from typing import Any

from taeda_distributions.utils import lazy_property
from taeda_registry.slots import tensor


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


class OfOneMatrix:
    """What distributions have in common that take a covariance, its inverse or its Cholesky factor."""

    _matrices = ("covariance_matrix", "precision_matrix", "scale_tril")
    _unbroadcasted_scale_tril: Any
    _batch_shape: Any

    def _one_of(self, *matrices: Any) -> tuple[str, Any]:
        """The name of the matrix that is given, and the matrix."""
        pairs = zip(self._matrices, matrices, strict=True)
        given = {name: value for name, value in pairs if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, matrix

    def _factor(self, name: str, matrix: Any) -> None:
        """Keep the Cholesky factor of the matrix that is given."""
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = tensor.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def _expand_matrix_of(self, new: Any, batch_shape: Any) -> None:
        """Give a distribution of another batch the matrices that this one has."""
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in self._matrices:
            if (matrix := self.__dict__.get(name)) is not None:
                new.__dict__[name] = matrix.expand((*batch_shape, *matrix.shape[-2:]))

    def _whole(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *matrix.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance of the normal vectors."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._whole(inverse_of(self._unbroadcasted_scale_tril))
