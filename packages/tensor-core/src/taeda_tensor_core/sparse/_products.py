"""Products of sparse matrices with vectors and matrices, sparse and dense ones."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.overrides import plain_beside
from taeda_tensor_core.sparse._making import as_given, coalesced, coo, to_layout, wide
from taeda_tensor_core.sparse._places import _t
from taeda_tensor_core.sparse._sources import at_places_alone, product_with, source_of
from taeda_tensor_core.sparse._tensor import SparseTensor, _table, _with, _written, sparse


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
