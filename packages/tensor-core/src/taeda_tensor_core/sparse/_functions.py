"""What sparse tensors compute."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.overrides import plain_beside
from taeda_tensor_core.sparse._blocks import BLOCKS, block_size
from taeda_tensor_core.sparse._making import (
    _flat,
    _unflat,
    as_given,
    broadcast,
    coalesced,
    coo,
    narrowed,
    nothing,
    to_dense,
    to_layout,
    wide,
)
from taeda_tensor_core.sparse._sources import at_places_alone, made_of, product_with, source_of
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _taken, _with, _written, sparse

Tensor = core.Tensor


# Parts and facts


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
    return _with(self, self._elements.clone(), tuple(p.clone() for p in self._places))


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


# Places


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
    given = dims if dims is not None else order[0] if order and not isinstance(order[0], int) else order
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
            result = result.index_select(
                dim, core.tensor(range(*one.indices(result.shape[dim])), dtype=core.int64)
            )
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


# Products


def _rows(x: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and values of a sparse matrix."""
    if x.dim() != 2:
        raise RuntimeError(f"mm: found a sparse tensor of shape {tuple(x.shape)}, expected a matrix")
    x = coo(x)
    return x._places[0][0], x._places[0][1], x._elements


def _fits(name: str, a: Any, b: Any) -> None:
    if a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]:
        raise RuntimeError(f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied")
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: found dtypes {a.dtype} and {b.dtype}, expected one")


def _lines(a: Any) -> tuple[Any, Any, Any] | None:
    """Where the rows of a sparse matrix begin, columns and values; None where its elements are in no order."""
    if a._way == "sparse_csr":
        return (*wide(a), a._elements)
    if a._way != "sparse_coo" or not a._ordered:
        return None
    return _starts(a), a._places[0][1], a._elements


def _starts(a: Any) -> Any:
    """Where the rows of a matrix in order begin, which is kept for the next product."""
    places = a._places[0]
    known, version, starts = a.__dict__.get("_found_starts", (None, 0, None))
    if known is not places or version != places._version:
        version = places._version
        starts = core.searchsorted(places[0], core.arange(a.shape[0] + 1, device=places.device))
        a._found_starts = places, version, starts
    return starts


def _sparse_dense(a: Any, b: Any, reduce: str = "sum") -> Any:
    fused = reduce == "sum" and b.dtype in (core.float32, core.float64) and a.dim() == 2 and b.numel()
    if fused and (lines := _lines(a)) is not None:
        # Each row is a bag of rows of b, which are summed up with the elements as their weights.
        starts, columns, values = lines
        return core.ops.embedding_bag(b, columns, starts, False, 0, False, values, True)[0]
    rows, columns, values = _rows(a)
    out = core.zeros((a.shape[0], b.shape[1]), dtype=values.dtype, device=values.device)
    products = values.unsqueeze(1) * b.index_select(0, columns)
    if reduce == "sum":
        return out.index_add(0, rows, products)
    return out.index_reduce(0, rows, products, reduce, include_self=False)


def _sparse_sparse(a: Any, b: Any) -> Any:
    """Each element of ``a`` meets the row of ``b`` that its column names."""
    rows, columns, values = _rows(a)
    lines = to_layout(b, "sparse_csr")
    starts, inner = wide(lines)
    counts = (starts[1:] - starts[:-1])[columns]
    element = core.repeat_interleave(core.arange(columns.shape[0], device=columns.device), counts)
    first = counts.cumsum(0) - counts
    partner = core.arange(element.shape[0], device=element.device) - first[element] + starts[columns][element]
    places = core.stack([rows[element], inner[partner]])
    product = values[element] * lines._elements[partner]
    made = SparseTensor.around((places,), product, (a.shape[0], b.shape[1]), "sparse_coo", False)
    made = coalesced(made)
    return as_given(made, a)


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of two matrices, of which one or both are sparse; both give a sparse one, none a dense one.

    Gradients of sparse matrices are those of their places alone.

    ``reduce`` says what becomes of the products that meet in an element where ``mat1`` is sparse and ``mat2`` is not:
    their 'sum', 'mean', 'amax' or 'amin' ('max' and 'min' are the same), zero where there are none.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.
        ValueError: another ``reduce``.
        NotImplementedError: a ``reduce`` other than 'sum' of other matrices.
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise ValueError(f"mm: argument 'reduce' is {reduce!r}, expected 'sum', 'mean', 'amax' or 'amin'")
    if reduce != "sum" and (not isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor)):
        raise NotImplementedError(
            f"mm: argument 'reduce' is {reduce!r}, expected 'sum' unless only 'mat1' is sparse"
        )
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return core.mm(mat1, mat2)
    _fits("mm", mat1, mat2)
    if mat1.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(f"mm: found shapes {tuple(mat1.shape)} and {tuple(mat2.shape)}, expected matrices")
    if not isinstance(mat2, SparseTensor):
        return _sparse_dense(mat1, mat2, reduce)
    if not isinstance(mat1, SparseTensor):
        return _sparse_dense(_t(mat2), mat1.t()).t().contiguous()
    return _sparse_sparse(mat1, mat2)


@sparse("mm", "spmm", "hspmm", "smm")
def _mm(mat1: Any, mat2: Any) -> Any:
    if not isinstance(mat2, SparseTensor):
        return product_with(mat1, mat2, mm)
    if source_of(mat2) is None or isinstance(mat1, SparseTensor) or mat1.dim() != 2:
        return mm(mat1, mat2)
    _fits("mm", mat1, mat2)
    return product_with(_t(mat2), mat1.t(), _sparse_dense).t().contiguous()


@sparse("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    if isinstance(input, SparseTensor):
        made = _mm(input, weight.t())
    else:
        made = _mm(input.reshape(-1, input.shape[-1]), weight.t()).reshape(*input.shape[:-1], weight.shape[0])
    return made if bias is None else made + bias


@sparse("mv")
def _mv(self: Any, vec: Any) -> Any:
    _fits("mv", self, vec)
    return product_with(self, vec, lambda x, v: _sparse_dense(x, v.unsqueeze(1)).squeeze(1))


@sparse("bmm")
def _bmm(input: Any, mat2: Any) -> Any:
    return product_with(input, mat2, _products)


def _products(input: Any, mat2: Any) -> Any:
    _fits("bmm", input, mat2)
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise NotImplementedError("bmm: expected a sparse first and a dense second argument")
    x = coo(input)
    batch, rows, columns = x._places[0]
    count, height, width = input.shape
    flat = core.stack([batch * height + rows, batch * width + columns])
    whole = SparseTensor.around((flat,), x._elements, (count * height, count * width), "sparse_coo", False)
    return _sparse_dense(whole, mat2.reshape(count * width, -1)).reshape(count, height, -1)


@sparse("matmul", "__matmul__", "__rmatmul__")
def _matmul(input: Any, other: Any) -> Any:
    if other.dim() == 1:
        return _mv(input, other)
    return _bmm(input, other) if input.dim() == 3 else _mm(input, other)


def _reversed_matmul(self: Any, other: Any) -> Any:
    return _matmul(other, self)


_table["__rmatmul__"] = _reversed_matmul


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), where ``mat1`` is sparse, or all three are dense.

    Gradients of sparse matrices are those of their places alone.
    """
    return _addmm(
        at_places_alone(input), at_places_alone(mat1), at_places_alone(mat2), beta=beta, alpha=alpha
    )


@sparse("addmm", "sspaddmm")
def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    if (
        isinstance(input, SparseTensor)
        and not isinstance(mat1, SparseTensor)
        and not isinstance(mat2, SparseTensor)
    ):
        raise plain_beside("addmm", SparseTensor)
    product = _mm(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    return product + (input if beta == 1 else input * beta)


@sparse("addmv")
def _addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    product = _mv(mat, vec)
    if alpha != 1:
        product = product * alpha
    return product + (input if beta == 1 else input * beta) if beta else product


def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: float = 1.0, alpha: float = 1.0, out: Any = None
) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the places of the sparse ``input``; nothing else is computed."""
    if out is not None:
        return _written("sampled_addmm", out, sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha))
    _fits("sampled_addmm", mat1, mat2)
    rows, columns, values = _rows(input)
    product = (mat1.index_select(-2, rows) * mat2.transpose(-2, -1).index_select(-2, columns)).sum(-1)
    return _with(input, values * beta + product * alpha)


# Element by element


@sparse("add", "__add__", "__radd__")
def _add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(other, SparseTensor) and isinstance(input, SparseTensor):
        a, b = coo(input), coo(other)
        if tuple(a.shape) != tuple(b.shape) or a._places[0].shape[0] != b._places[0].shape[0]:
            raise RuntimeError(f"add: found shapes {tuple(a.shape)} and {tuple(b.shape)}, expected one")
        values = core.cat([a._elements, b._elements * alpha if alpha != 1 else b._elements])
        made = SparseTensor.around(
            (core.cat([a._places[0], b._places[0]], 1),), values, tuple(a.shape), "sparse_coo", False
        )
        return coalesced(made) if input._way == "sparse_coo" else as_given(made, input)
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError("add: a number added to a sparse tensor would fill it; use to_dense() first")
    return core.add(_as_dense(input), _as_dense(other), alpha=alpha)


def _as_dense(x: Any) -> Any:
    if not isinstance(x, SparseTensor):
        return x
    source = source_of(x)
    return to_dense(x) if source is None else source


@sparse("add_", "__iadd__")
def _add_to(self: Any, other: Any, *, alpha: float = 1) -> Any:
    """Adds a sparse tensor to the places of a dense one that it names."""
    if isinstance(self, SparseTensor):
        return _taken(self, _add(self, other, alpha=alpha))
    if tuple(self.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add_: argument 'other' has shape {tuple(other.shape)}, expected {tuple(self.shape)}"
        )
    x = coalesced(other)
    values = (x._elements if alpha == 1 else x._elements * alpha).to(self.dtype)
    return self.index_put_(tuple(x._places[0]), values, accumulate=True)


@sparse("_fused_sgd_")
def _sgd(
    params: Any, grads: Any, buffers: Any, lr: float, momentum: float, dampening: float, weight_decay: float,
    nesterov: bool, maximize: bool, first_step: bool,
) -> None:  # fmt: skip
    """Steps of gradient descent where some gradients are sparse: without momentum these move only rows they hold."""
    if weight_decay:
        raise RuntimeError(
            "SGD: argument 'weight_decay' moves all rows and does not go with sparse gradients; use sparse=False"
        )
    dense = [i for i, grad in enumerate(grads) if not isinstance(grad, SparseTensor)]
    sign = -1 if maximize else 1
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        if not isinstance(grad, SparseTensor):
            continue
        if momentum:
            _add_to(buffers[i].mul_(momentum), grad, alpha=sign * (1 if first_step else 1 - dampening))
            param.add_(buffers[i], alpha=-lr * (momentum if nesterov else 1))
        if nesterov or not momentum:
            _add_to(param, grad, alpha=-sign * lr)
    if dense:
        kept = [buffers[i] for i in dense] if momentum else []
        core.ops._fused_sgd_(
            [params[i] for i in dense], [grads[i] for i in dense], kept,
            lr, momentum, dampening, weight_decay, nesterov, maximize, first_step,
        )  # fmt: skip


@sparse("sub", "subtract", "__sub__")
def _sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(input, other, alpha=-alpha)


@sparse("__rsub__", "rsub")
def _rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    return _add(other, input, alpha=-alpha)


@sparse("mul", "multiply", "__mul__", "__rmul__")
def _mul(input: Any, other: Any) -> Any:
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if isinstance(other, SparseTensor) and tuple(other.shape) != tuple(input.shape):
        return _spread_product(input, other)
    if isinstance(other, SparseTensor):
        return as_given(_common(coalesced(input), coalesced(other)), input)
    if not isinstance(other, Tensor) or other.dim() == 0:
        return _with(input, input._elements * other)
    shape = tuple(core.broadcast_shapes(input.shape, other.shape))
    x = coalesced(input if shape == tuple(input.shape) else broadcast(input, shape))
    spread = core.broadcast_to(other, shape)
    made = _with(x, x._elements * spread[tuple(x._places[0])])
    return as_given(made, input)


def _spread_product(a: Any, b: Any) -> Any:
    """The product of tensors whose shapes broadcast: at the places of one that has the result's shape."""
    shape = tuple(core.broadcast_shapes(a.shape, b.shape))
    for whole, other in ((a, b), (b, a)):
        if tuple(whole.shape) == shape:
            return _mul(whole, other.to_dense())
    return _mul(broadcast(a, shape), b.to_dense())


def _common(a: Any, b: Any) -> Any:
    """Products where both have a place."""
    if a._places[0].shape == b._places[0].shape and core.equal(a._places[0], b._places[0]):
        return _with(a, a._elements * b._elements)
    sizes = tuple(a.shape[: a._places[0].shape[0]])
    mine, other = _flat(a._places[0], sizes), _flat(b._places[0], sizes)
    at = core.searchsorted(other, mine).clamp(max=max(other.shape[0] - 1, 0))
    both = (
        ((other[at] == mine) if other.shape[0] else core.zeros_like(mine, dtype=core.bool))
        .nonzero()
        .flatten()
    )
    values = a._elements[both] * b._elements[at[both]]
    return SparseTensor.around((_unflat(mine[both], sizes),), values, tuple(a.shape), "sparse_coo", True)


@sparse("div", "divide", "true_divide", "__truediv__")
def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if isinstance(other, Tensor) and other.dim() > 0:
        raise NotImplementedError(
            "div: expected a number or a tensor of 0 dimensions as divisor of a sparse tensor"
        )
    return _with(input, core.div(input._elements, other, rounding_mode=rounding_mode))


@sparse("floor_divide", "__floordiv__")
def _floor_divide(input: Any, other: Any) -> Any:
    return _div(input, other, rounding_mode="floor")


@sparse("pow", "__pow__")
def _pow(input: Any, exponent: Any) -> Any:
    if isinstance(exponent, Tensor) or exponent <= 0:
        raise NotImplementedError("pow: expected a positive number as exponent of a sparse tensor")
    x = coalesced(input)
    return _with(x, x._elements**exponent)


def _in_place(name: str, function: Any) -> None:
    """A function whose result the tensor itself takes."""

    @sparse(f"{name}_", f"__i{name}__")
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, SparseTensor):  # a dense tensor meets a sparse one
            made = function(self, *args, **kwargs)
            return self.copy_(to_dense(made) if isinstance(made, SparseTensor) else made)
        return _taken(self, function(self, *args, **kwargs))


for _short, _function in (("sub", _sub), ("mul", _mul), ("div", _div), ("pow", _pow)):
    _in_place(_short, _function)
_table["__itruediv__"] = _table["div_"]


@sparse("zeros_like")
def _zeros_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **_: Any,
) -> Any:
    way = input._way if layout is None else str.__str__(layout)
    kind, place = dtype or input.dtype, device or input.device
    if way == "strided":
        made = core.zeros(tuple(input.shape), dtype=kind, device=place)
    else:
        sizes = block_size(input) if input._way in BLOCKS else None
        if way in BLOCKS and sizes is None:
            raise RuntimeError(
                f"zeros_like: layout {way} needs the size of blocks, which {input._way} has not"
            )
        made = nothing(way, tuple(input.shape), kind, place, _dense_dim(input), sizes)
        made = narrowed(made, input)
    return made.requires_grad_() if requires_grad else made


@sparse("broadcast_to", "_sparse_broadcast_to")
def _broadcast_to(input: Any, size: Any) -> Any:
    return broadcast(input, tuple(size))


@sparse("empty_like")
def _empty_like(input: Any, *, layout: Any = None, **options: Any) -> Any:
    """Coordinates without elements; compressed tensors keep their places, and layouts of blocks their size."""
    made = _zeros_like(input, layout=layout, **options)
    if input._way == "sparse_coo" or made.layout is not input.layout:
        return made
    values = core.zeros_like(input._elements, dtype=made.dtype, device=made.device)
    kept = _with(made, values, tuple(p.to(made.device).clone() for p in input._places))
    return kept.requires_grad_() if made.requires_grad else kept


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


@sparse("zero_")
def _zero(self: Any) -> Any:
    self._elements, self._ordered = self._elements.narrow(_batch_dims(self), 0, 0).detach(), True
    self._places = (
        (self._places[0][:, :0],)
        if self._way == "sparse_coo"
        else (self._places[0] * 0, self._places[1][..., :0])
    )
    return self
