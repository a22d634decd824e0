"""Sums, means, norms and softmax of sparse tensors, and matrices of diagonals."""

from __future__ import annotations

import math
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core._sizes import as_tuple
from taeda_tensor_core.sparse._blocks import BLOCKS
from taeda_tensor_core.sparse._facts import _batch_dims, _dim
from taeda_tensor_core.sparse._making import (
    _flat,
    as_given,
    coalesced,
    coo,
    dense_to_sparse,
    to_dense,
    to_layout,
)
from taeda_tensor_core.sparse._sources import at_places_alone, source_of
from taeda_tensor_core.sparse._tensor import SparseTensor, _with, sparse


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Sums over all elements or over dimensions; what is left of sparse dimensions stays sparse.

    Args:
        input: a sparse tensor.
        dim: an int or several; all by default, which gives a dense tensor of 0 dimensions.
        dtype: of the result.
    """
    if not isinstance(input, SparseTensor):
        raise TypeError(f"sparse.sum: argument 'input' is a {type(input).__name__}, expected a sparse tensor")
    # What is left sparse keeps its dtype here; `torch.sum` counts integers in int64.
    some = dim is not None and len(set(as_tuple(dim))) < input.dim()
    return _sum(at_places_alone(input), dim, dtype=input.dtype if dtype is None and some else dtype)


@sparse("sum")
def _sum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    source = source_of(input) if dim is None else None
    if source is not None:
        return source.sum(dtype=dtype)
    x = coo(input)
    values = x._elements if dtype is None else x._elements.to(dtype)
    if dtype is None and not (values.is_floating_point() or values.is_complex()):
        values = values.to(core.int64)
    if dim is None:
        return values.sum().to(values.dtype)
    given = as_tuple(dim)
    if len({d % max(x.dim(), 1) for d in given}) != len(given):
        raise RuntimeError(f"sum: argument 'dim' is {given}, a dimension appears multiple times in it")
    count = x._places[0].shape[0]
    dims = {_dim("sum", d, x.dim()) for d in given}
    dense = tuple(d - count + 1 for d in dims if d >= count)
    values = values.sum(dense) if dense else values
    kept = [d for d in range(count) if d not in dims]
    shape = tuple(n for d, n in enumerate(x.shape) if d not in dims)
    if not kept:
        result: Any = values.sum(0).to(values.dtype)
    else:
        result = coalesced(SparseTensor.around((x._places[0][kept],), values, shape, "sparse_coo", False))
    if not keepdim:
        return result
    whole = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    dense_result = to_dense(result) if isinstance(result, SparseTensor) else result
    made = dense_to_sparse(dense_result.reshape(whole), count)
    return made if input._way in ("sparse_coo", *BLOCKS) or _batch_dims(input) else as_given(made, input)


@sparse("mean")
def _mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    dims = range(input.dim()) if dim is None else as_tuple(dim)
    return _sum(input, dim, keepdim, dtype) / math.prod(input.shape[d] for d in dims)


@sparse("norm")
def _norm(input: Any, p: Any = "fro", *_: Any, **__: Any) -> Any:
    return coalesced(input)._elements.norm() if p in ("fro", 2) else coalesced(input)._elements.norm(p)


@sparse("any")
def _any(input: Any) -> Any:
    return coalesced(input)._elements.any()


def _normalized(input: Any, dim: int, dtype: Any, logarithm: bool) -> Any:
    name = "log_softmax" if logarithm else "softmax"
    if not isinstance(input, SparseTensor):
        raise NotImplementedError(f"sparse.{name}: argument 'input' is dense, expected a sparse tensor")
    x = coalesced(input)
    values = x._elements if dtype is None else x._elements.to(dtype)
    places, count = x._places[0], x._places[0].shape[0]
    dim = _dim(name, dim, x.dim())
    if dim >= count:
        change = core.log_softmax if logarithm else core.softmax
        return _with(x, change(values, dim - count + 1))
    others = [d for d in range(count) if d != dim]
    group = _flat(places[others], tuple(x.shape[d] for d in others)) if others else core.zeros_like(places[0])
    _, line = core.unique(group, return_inverse=True)
    lines = int(line.max()) + 1 if line.numel() else 0
    spread = line.reshape(-1, *(1,) * (values.ndim - 1)).expand_as(values)
    least = core.full((lines, *values.shape[1:]), -float("inf"), dtype=values.dtype, device=values.device)
    shifted = values - least.scatter_reduce(0, spread, values.detach(), "amax")[line]
    powers = core.exp(shifted)
    total = core.zeros_like(least).index_add(0, line, powers)[line]
    return _with(x, shifted - core.log(total) if logarithm else powers / total)


@sparse("softmax")
def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """Softmax along ``dim`` of the elements that are there: the others count as minus infinity."""
    return _normalized(input, dim, dtype, False)


@sparse("log_softmax")
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return _normalized(input, dim, dtype, True)


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with rows of ``diagonals`` (n, length) on the diagonals ``offsets`` (n,).

    Raises:
        RuntimeError: parts that do not fit together, an offset twice.
    """
    diagonals, offsets = core.atleast_2d(diagonals), core.atleast_1d(offsets)
    if diagonals.shape[0] != offsets.shape[0] or len(set(offsets.tolist())) != offsets.shape[0]:
        raise RuntimeError(
            f"spdiags: found {diagonals.shape[0]} diagonals and offsets {offsets.tolist()}, expected one each"
        )
    columns = core.arange(diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
    rows = columns - offsets.unsqueeze(1)
    there = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    places = core.stack([rows[there], columns[there]])
    made = SparseTensor.around((places,), diagonals[there], tuple(shape), "sparse_coo", False)
    return coalesced(made) if layout is None else to_layout(made, layout)
