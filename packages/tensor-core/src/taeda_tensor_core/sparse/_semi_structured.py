"""Names of matrices of which two in four elements are zero: kernels that make use of it are those of GPUs."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]


class SparseSemiStructuredTensor:
    """A matrix of which two in four elements are kept; nothing is an instance."""

    _FORCE_CUTLASS = False
    _DEFAULT_ALG_ID = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} is not there: no device here multiplies matrices with two in four elements; "
            "a mask on the dense tensor gives the same numbers"
        )

    @classmethod
    def from_dense(cls, original_tensor: Any) -> NoReturn:
        """Refused, as `to_sparse_semi_structured` is."""
        to_sparse_semi_structured(original_tensor)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The same, for one of two libraries."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The same, for the other one."""


def to_sparse_semi_structured(original_tensor: Any, transposed: bool = False, alg_id: int = 0) -> NoReturn:
    """Keep two in four elements of a matrix.

    Raises:
        RuntimeError: Always: as in PyTorch, tensors of the cpu cannot be.
    """
    raise RuntimeError(
        f"to_sparse_semi_structured: argument 'original_tensor' is on {original_tensor.device}, which has no kernels "
        "for matrices with two in four elements; multiply the dense tensor by its mask instead"
    )
