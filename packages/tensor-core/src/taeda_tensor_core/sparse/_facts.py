"""The parts of sparse tensors, what they tell of themselves, and their copies in another dtype, layout or place."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._blocks import BLOCKS, block_size
from taeda_tensor_core.sparse._making import coalesced, coo, nothing, to_layout
from taeda_tensor_core.sparse._sources import made_of, source_of
from taeda_tensor_core.sparse._tensor import _with, sparse


def _dim(name: str, dim: int, count: int) -> int:
    """The number of a dimension from the first on; IndexError for one that is not there."""
    if not -count <= dim < count:
        raise IndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        )
    return dim % count


@sparse("coalesce")
def _coalesce(self: Any) -> Any:
    return made_of(source_of(self), coalesced(self))


@sparse("is_coalesced")
def _is_coalesced(self: Any) -> bool:
    return self._way == "sparse_coo" and self._ordered


@sparse("indices")
def _indices(self: Any) -> Any:
    if not _is_coalesced(self):
        raise RuntimeError("indices: found a sparse tensor that is not coalesced; call coalesce() first")
    return self._places[0]


@sparse("values")
def _values_of(self: Any) -> Any:
    if self._way == "sparse_coo" and not self._ordered:
        raise RuntimeError("values: found a sparse tensor that is not coalesced; call coalesce() first")
    return self._elements


@sparse("_indices")
def _raw_indices(self: Any) -> Any:
    return coo(self)._places[0]


@sparse("_values")
def _raw_values(self: Any) -> Any:
    return self._elements


_BY_ROWS, _BY_COLUMNS = ("sparse_csr", "sparse_bsr"), ("sparse_csc", "sparse_bsc")


def _part(name: str, ways: tuple[str, str], place: int) -> None:
    @sparse(name)
    def part(self: Any) -> Any:
        if self._way not in ways:
            raise RuntimeError(f"{name}: found layout {self._way}, expected {' or '.join(ways)}")
        return self._places[place]


for _row in (("crow_indices", _BY_ROWS, 0), ("col_indices", _BY_ROWS, 1),
             ("ccol_indices", _BY_COLUMNS, 0), ("row_indices", _BY_COLUMNS, 1)):  # fmt: skip
    _part(*_row)


@sparse("_nnz")
def _nnz(self: Any) -> int:
    return int(self._elements.shape[_batch_dims(self)])


def _batch_dims(self: Any) -> int:
    """How many dimensions stand in front of compressed matrices."""
    return self._places[0].ndim - 1 if self._way != "sparse_coo" else 0


@sparse("sparse_dim", "_dimI")
def _sparse_dim(self: Any) -> int:
    return int(self._places[0].shape[0]) if self._way == "sparse_coo" else 2


@sparse("dense_dim", "_dimV")
def _dense_dim(self: Any) -> int:
    return int(self._elements.ndim - (3 if self._way in BLOCKS else 1) - _batch_dims(self))


@sparse("is_sparse")
def _is_sparse(self: Any) -> bool:
    return self._way == "sparse_coo"


@sparse("is_sparse_csr")
def _is_sparse_csr(self: Any) -> bool:
    return self._way == "sparse_csr"


@sparse("layout")
def _layout(self: Any) -> Any:
    return getattr(core, self._way)


@sparse("size")
def _size(self: Any, dim: int | None = None) -> Any:
    return self.shape if dim is None else self.shape[dim]


def _attribute(name: str) -> None:
    @sparse(name)
    def attribute(self: Any) -> Any:
        return getattr(self._elements, name)


for _fact in ("requires_grad", "is_leaf", "grad_fn"):
    _attribute(_fact)


@sparse("grad")
def _grad(self: Any) -> Any:
    return None if self._elements.grad is None else _with(self, self._elements.grad)


@sparse("grad__set__")
def _set_grad(self: Any, grad: Any) -> None:
    self._elements.grad = grad if grad is None else grad._elements


@sparse("data__set__")
def _set_data(self: Any, other: Any) -> None:
    if getattr(other, "_way", None) != self._way:
        raise RuntimeError(
            f"data: a tensor of layout {self.layout} and one of layout {other.layout} "
            "have an incompatible tensor type; use a new tensor"
        )
    elements, values = self._elements, other._elements.detach()
    with core._C.DisableTorchFunctionSubclass():
        core.Tensor.data.__set__(self, other)  # sizes, dtype and device; the places stand in its attributes
    elements.data = values
    self._elements = elements  # gradients stay with what they belong to


@sparse("register_hook")
def _register_hook(self: Any, hook: Any) -> Any:
    """The hook gets the gradient with the places of this tensor, and may give another with these places."""
    if not callable(hook):
        raise TypeError(f"register_hook: argument 'hook' must be callable, found {type(hook).__name__}")

    def called(grad: Any) -> Any:
        result = hook(_with(self, grad))
        return result if result is None else result._elements

    return self._elements.register_hook(called)


@sparse("requires_grad_")
def _requires_grad(self: Any, requires_grad: bool = True) -> Any:
    self._elements.requires_grad_(requires_grad)
    return self


@sparse("requires_grad__set__")
def _set_requires_grad(self: Any, requires_grad: bool) -> None:
    self._elements.requires_grad = requires_grad


@sparse("data")
def _data(self: Any) -> Any:
    return _with(self, self._elements.data)


@sparse("detach", "detach_")
def _detach(self: Any) -> Any:
    return _with(self, self._elements.detach())


@sparse("clone")
def _clone(self: Any, *, memory_format: Any = None) -> Any:
    made = _with(self, self._elements.clone(), tuple(p.clone() for p in self._places))
    return made_of(source_of(self), made)


@sparse("to")
def _to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """On another device or of another dtype; on meta it holds no element."""
    values = self._elements.to(*args, **kwargs)
    if values.is_meta and not self._elements.is_meta:
        sizes = block_size(self) if self._way in BLOCKS else None
        return nothing(self._way, tuple(self.shape), values.dtype, values.device, _dense_dim(self), sizes)
    if values is self._elements:
        return self
    return _with(self, values, tuple(p.to(values.device) for p in self._places))


def _as_dtype(name: str) -> None:
    @sparse(name)
    def convert(self: Any) -> Any:
        return _with(self, getattr(self._elements, name)())


for _cast in (
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "short",
    "char",
    "byte",
    "bool",
    "cfloat",
    "cdouble",
    "cpu",
):
    _as_dtype(_cast)


@sparse("type")
def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    made = self._elements.type(dtype, non_blocking)
    if dtype is not None:
        return _with(self, made)
    home, _, name = made.rpartition(".")
    return f"{home}.sparse.{name}"


@sparse("type_as")
def _type_as(self: Any, other: Any) -> Any:
    return _with(self, self._elements.to(other.dtype))


@sparse("to_sparse")
def _to_sparse(
    self: Any,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    if layout is None and sparse_dim is None and blocksize is None and self._way == "sparse_coo":
        return self
    return to_layout(self, layout or "sparse_coo", blocksize)


@sparse("to_sparse_coo")
def _to_coo(self: Any) -> Any:
    return to_layout(self, "sparse_coo")


@sparse("to_sparse_csr")
def _to_csr(self: Any, dense_dim: int | None = None) -> Any:
    return to_layout(self, "sparse_csr")


@sparse("to_sparse_csc")
def _to_csc(self: Any, dense_dim: int | None = None) -> Any:
    return to_layout(self, "sparse_csc")


@sparse("to_sparse_bsr")
def _to_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    return to_layout(self, "sparse_bsr", blocksize)


@sparse("to_sparse_bsc")
def _to_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    return to_layout(self, "sparse_bsc", blocksize)
