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

from taeda_tensor_core.sparse import _lowrank, _masked, _resize, _unary  # noqa: F401 (put their functions into the table)
from taeda_tensor_core.sparse._functions import addmm, mm, sampled_addmm
from taeda_tensor_core.sparse._making import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
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
    """Context in which sparse tensors are checked when they are made; here they always are."""

    def __init__(self, enable: bool = True) -> None:
        self.enable_ = enable

    @staticmethod
    def is_enabled() -> bool:
        """True: places are always checked."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing is to be done."""

    @staticmethod
    def disable() -> None:
        """Nothing is done: places stay checked."""

    def __call__(self, function: Any) -> Any:
        """The function: what it makes is checked."""
        return function

    def __enter__(self) -> check_sparse_tensor_invariants:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


_ELEMENTS = {
    "BFloat16Tensor": "bfloat16", "ByteTensor": "uint8", "CharTensor": "int8", "DoubleTensor": "float64",
    "FloatTensor": "float32", "HalfTensor": "float16", "IntTensor": "int32", "LongTensor": "int64",
    "ShortTensor": "int16",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """The older makers of sparse tensors, `sparse.FloatTensor(indices, values, size)` and its like."""
    if name not in _ELEMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import taeda_tensor_core as core

    dtype = getattr(core, _ELEMENTS[name])

    def make(indices: Any = None, values: Any = None, size: Any = None) -> Any:
        if indices is None:
            return core.sparse_coo_tensor(
                core.empty((0, 0), dtype=core.int64), core.empty(0, dtype=dtype), ()
            )
        return core.sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__name__ = make.__qualname__ = name
    return make
