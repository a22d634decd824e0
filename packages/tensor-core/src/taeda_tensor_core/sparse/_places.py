"""Sparse tensors whose elements come to stand elsewhere: transposes, selections, joined tensors."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core._sizes import as_tuple, of_several
from taeda_tensor_core.sparse._blocks import BLOCKS
from taeda_tensor_core.sparse._facts import _batch_dims, _dense_dim, _dim
from taeda_tensor_core.sparse._making import as_given, broadcast, coalesced, coo, to_dense
from taeda_tensor_core.sparse._sources import made_of, source_of
from taeda_tensor_core.sparse._tensor import SparseTensor, sparse


@sparse("transpose", "swapaxes", "swapdims")
def _transpose(self: Any, dim0: int, dim1: int) -> Any:
    dims = list(range(self.dim()))
    dim0, dim1 = (_dim("transpose", d, self.dim()) for d in (dim0, dim1))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    made, source = _permute(self, dims), source_of(self)
    return made if source is None else made_of(source.transpose(dim0, dim1), made)


@sparse("t")
def _t(self: Any) -> Any:
    if self.dim() > 2:
        raise RuntimeError(f"t: found {self.dim()} dimensions, expected at most 2")
    return _transpose(self, 0, 1) if self.dim() == 2 else self


@sparse("T", "mT")
def _matrix_transpose(self: Any) -> Any:
    return _transpose(self, -2, -1)


# By rows of the one is by columns of the other.
_TURNED = {
    "sparse_csr": "sparse_csc", "sparse_csc": "sparse_csr", "sparse_bsr": "sparse_bsc", "sparse_bsc": "sparse_bsr"
}  # fmt: skip


def _turned(self: Any) -> Any:
    """The transposed matrix in the parts that there are: what lay by rows lies by columns."""
    dims = _batch_dims(self)
    values = self._elements.transpose(dims + 1, dims + 2) if self._way in BLOCKS else self._elements
    shape = (*self.shape[:dims], self.shape[dims + 1], self.shape[dims], *self.shape[dims + 2 :])
    return SparseTensor.around(self._places, values, shape, _TURNED[self._way], True)


@sparse("permute")
def _permute(self: Any, *order: Any, dims: Any = None) -> Any:
    given = of_several(order) if dims is None else as_tuple(dims)
    order = [_dim("permute", d, self.dim()) for d in given]
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(
            f"permute: argument 'dims' is {given}, expected each of {self.dim()} dimensions once"
        )
    dims = _batch_dims(self)
    if self._way in _TURNED and order == [*range(dims), dims + 1, dims, *range(dims + 2, self.dim())]:
        return _turned(self)
    x = coo(self)
    count = x._places[0].shape[0]
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(
            f"permute: argument 'dims' is {tuple(order)}, expected each of {self.dim()} dimensions once"
        )
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError("permute: sparse and dense dimensions cannot change places")
    values = x._elements.permute(0, *(d - count + 1 for d in order[count:]))
    shape = tuple(self.shape[d] for d in order)
    ordered = values.shape[0] < 2
    made = SparseTensor.around((x._places[0][order[:count]],), values, shape, "sparse_coo", ordered)
    return as_given(made, self)


@sparse("select", "__getitem__")
def _select(self: Any, dim: Any, index: Any = None) -> Any:
    if index is None:
        if not isinstance(dim, int):
            return _item(self, dim)
        dim, index = 0, dim
    dim = _dim("select", dim, self.dim())
    if not -self.shape[dim] <= index < self.shape[dim]:
        raise IndexError(
            f"select: index {index} is out of range for dimension {dim} of size {self.shape[dim]}"
        )
    shape = (*self.shape[:dim], *self.shape[dim + 1 :])
    if dim < _batch_dims(self):
        chosen = tuple(p.select(dim, index) for p in self._places)
        return SparseTensor.around(chosen, self._elements.select(dim, index), shape, self._way, True)
    first_dense = self.dim() - _dense_dim(self)
    if dim >= first_dense and self._way != "sparse_coo":
        values = self._elements.select(dim - first_dense - _dense_dim(self), index)
        return SparseTensor.around(self._places, values, shape, self._way, True)
    x = coo(self)
    places, count = x._places[0], x._places[0].shape[0]
    if dim >= count:
        return SparseTensor.around(
            (places,), x._elements.select(dim - count + 1, index), shape, "sparse_coo", x._ordered
        )
    here = (places[dim] == index % self.shape[dim]).nonzero().flatten()
    kept = [d for d in range(count) if d != dim]
    values = x._elements[here]
    if not kept:
        return values.sum(0).to(values.dtype)
    made = SparseTensor.around((places[kept][:, here],), values, shape, "sparse_coo", x._ordered)
    return made if self._way == "sparse_coo" else coalesced(made)


@sparse("__setitem__")
def _set_item(self: Any, index: Any, value: Any) -> None:
    """Refused, as a place may not be there: masks, `index_put_` of dense tensors and new tensors serve instead."""
    if isinstance(self, SparseTensor):
        raise TypeError("Cannot assign to a sparse tensor; use to_dense() first, or make a new one")
    dense = to_dense(value) if isinstance(value, SparseTensor) else value
    self[index] = dense


def _item(self: Any, index: Any) -> Any:
    """Rows and columns by numbers, slices and lists of them, one dimension after the other."""
    result, dim = self, 0
    whole = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in whole if i is Ellipsis]:
        at = next(k for k, i in enumerate(whole) if i is Ellipsis)
        taken = sum(i is not None for i in whole)
        whole[at : at + 1] = [slice(None)] * (self.dim() - taken + 1)
    for one in whole:
        if one is None:
            result, dim = result.unsqueeze(dim), dim + 1
            continue
        if isinstance(one, bool) or not isinstance(one, (int, slice)):
            raise NotImplementedError(
                f"indexing of sparse tensors: expected ints and slices, found {type(one).__name__}; use to_dense()"
            )
        if isinstance(one, int):
            result = result.select(dim, one)
            continue
        if one != slice(None):
            kept = range(*one.indices(result.shape[dim]))
            result = result.index_select(dim, core.tensor(kept, dtype=core.int64, device=result.device))
        dim += 1
    return result


@sparse("index_select")
def _index_select(self: Any, dim: int, index: Any) -> Any:
    dim = _dim("index_select", dim, self.dim())
    x = coo(self)
    places, count = x._places[0], x._places[0].shape[0]
    shape = (*self.shape[:dim], index.shape[0], *self.shape[dim + 1 :])
    if dim >= count:
        values = x._elements.index_select(dim - count + 1, index)
        return SparseTensor.around((places,), values, shape, "sparse_coo", x._ordered)
    size = self.shape[dim]
    least, largest = (int(index.min()), int(index.max())) if index.numel() else (0, -1)
    if least < -size or largest >= size:
        raise IndexError(
            f"index_select: argument 'index' has {least} to {largest}, expected {-size} to {size - 1}"
        )
    index = core.where(index < 0, index + size, index)
    wanted, element = (places[dim].unsqueeze(0) == index.unsqueeze(1)).nonzero().unbind(1)
    chosen = places[:, element].clone()
    chosen[dim] = wanted
    return SparseTensor.around((chosen,), x._elements[element], shape, "sparse_coo", False)


@sparse("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> Any:
    if not all(isinstance(x, SparseTensor) for x in tensors):
        raise TypeError("cat: found dense among sparse tensors, expected sparse ones")
    parts = [coo(x) for x in tensors]
    dim, count = _dim("cat", dim, parts[0].dim()), parts[0]._places[0].shape[0]
    if dim >= count:
        raise NotImplementedError("cat: sparse tensors are joined along sparse dimensions")
    places, shift = [], 0
    for x in parts:
        moved = x._places[0].clone()
        moved[dim] += shift
        shift += x.shape[dim]
        places.append(moved)
    shape = (*parts[0].shape[:dim], shift, *parts[0].shape[dim + 1 :])
    values = core.cat([x._elements for x in parts])
    return SparseTensor.around((core.cat(places, 1),), values, shape, "sparse_coo", False)


@sparse("stack")
def _stack(tensors: Any, dim: int = 0) -> Any:
    each = list(tensors)
    if len({tuple(x.shape) for x in each}) != 1:
        raise RuntimeError(f"stack: found shapes {[tuple(x.shape) for x in each]}, expected equal ones")
    return _cat([_unsqueeze(coo(x), dim) for x in each], dim)


@sparse("broadcast_to", "_sparse_broadcast_to")
def _broadcast_to(input: Any, size: Any) -> Any:
    return broadcast(input, tuple(size))


@sparse("unsqueeze")
def _unsqueeze(self: Any, dim: int) -> Any:
    if self._way != "sparse_coo":
        raise NotImplementedError(f"unsqueeze: not defined for layout {self._way}; use to_sparse_coo() first")
    dim = _dim("unsqueeze", dim, self.dim() + 1)
    places, count = self._places[0], self._places[0].shape[0]
    shape = (*self.shape[:dim], 1, *self.shape[dim:])
    if dim > count:
        return SparseTensor.around(
            (places,), self._elements.unsqueeze(dim - count + 1), shape, "sparse_coo", self._ordered
        )
    line = places.new_zeros((1, places.shape[1]))
    return SparseTensor.around(
        (core.cat([places[:dim], line, places[dim:]]),), self._elements, shape, "sparse_coo", self._ordered
    )
