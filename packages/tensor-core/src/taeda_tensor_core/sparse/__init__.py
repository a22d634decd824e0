"""Sparse tensors: those of coordinates (COO) and those of compressed rows or columns (CSR, CSC), also of blocks
(BSR, BSC).

A sparse tensor keeps its places as integer tensors and its elements as one tensor of values. What it computes is put
together of taeda's operators, so that gradients flow to values and to the dense tensors that meet them, on any device.
Whatever is not defined for sparse tensors is refused by name; `to_dense` always helps.

Example:
    >>> edges = taeda.tensor([[0, 1, 2], [1, 2, 0]])
    >>> graph = taeda.sparse_coo_tensor(edges, taeda.ones(3), (3, 3))
    >>> (graph @ taeda.arange(3.0).unsqueeze(1)).flatten()
    tensor([1., 2., 0.])
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _older_names
from taeda_tensor_core._C import Tensor  # noqa: F401 (annotations of programs name it here)
from taeda_tensor_core._sizes import as_tuple, is_number
from taeda_tensor_core.sparse import _alike, _elementwise, _lowrank, _masked, _resize, _unary  # noqa: F401 (put their functions into the table)
from taeda_tensor_core.sparse._making import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from taeda_tensor_core.sparse._products import addmm, mm, sampled_addmm
from taeda_tensor_core.sparse._semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from taeda_tensor_core.sparse._sums import log_softmax, softmax, spdiags, sum
from taeda_tensor_core.sparse._tensor import SparseTensor, bind_table

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "SparseTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "sum",
    "to_sparse_semi_structured",
]

bind_table()


class check_sparse_tensor_invariants:
    """Context in which sparse tensors are checked when they are made: here they always are, whatever is asked for."""

    _asked = False

    def __init__(self, enable: bool = True) -> None:
        self.state, self.saved_state = enable, False

    @staticmethod
    def is_enabled() -> bool:
        """Whether checks were asked for."""
        return check_sparse_tensor_invariants._asked

    @staticmethod
    def enable() -> None:
        """Ask for checks."""
        check_sparse_tensor_invariants._asked = True

    @staticmethod
    def disable() -> None:
        """Ask for none; places stay checked."""
        check_sparse_tensor_invariants._asked = False

    def __call__(self, function: Any) -> Any:
        """The function, in this context."""
        from functools import wraps

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return inside

    def __enter__(self) -> check_sparse_tensor_invariants:
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._asked = self.state
        return self

    def __exit__(self, *_: Any) -> None:
        check_sparse_tensor_invariants._asked = self.saved_state


_ELEMENTS = {
    name: dtype
    for dtype, name in _older_names.TENSORS.items()
    if dtype not in ("bool", "complex64", "complex128")
}


class _Maker(type):
    """The older types of sparse tensors: calls make one, `isinstance` asks for layout, dtype and the cpu."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, SparseTensor)
            and instance.is_sparse
            and instance.dtype is cls.dtype
            and instance.device.type == "cpu"
        )

    def __call__(
        cls, indices: Any = None, values: Any = None, size: Any = None, *more: Any, device: Any = None
    ) -> Any:
        import taeda_tensor_core as core

        given = tuple(item for item in (indices, values, size, *more) if item is not None)
        sizes = given[0] if len(given) == 1 and isinstance(given[0], tuple) else given
        if all(is_number(item) for item in sizes):  # a size, or nothing
            return core.sparse_coo_tensor(size=as_tuple(sizes) or (0,), dtype=cls.dtype, device=device)
        if more or indices is None or values is None:
            raise TypeError(
                f"sparse.{cls.__name__}: expected a size, or indices, values and a size, found "
                f"{', '.join(type(item).__name__ for item in given)}"
            )
        return core.sparse_coo_tensor(indices, values, size, device=device)  # of the dtype of the values

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def __getattr__(name: str) -> Any:
    """The older types, `sparse.FloatTensor(indices, values, size)` and its like."""
    if name not in _ELEMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import taeda_tensor_core as core

    body = {"dtype": getattr(core, _ELEMENTS[name]), "__doc__": f"Sparse tensors of {_ELEMENTS[name]}."}
    globals()[name] = made = _Maker(name, (), body)
    return made
