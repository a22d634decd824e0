"""Making sparse tensors, and turning one kind into another."""

from __future__ import annotations

import math
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse import _blocks
from taeda_tensor_core.sparse._sources import made_of
from taeda_tensor_core.sparse._tensor import SparseTensor, _with, sparse

Tensor = core.Tensor


def _values(name: str, values: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    given = isinstance(values, Tensor)
    tensor = values if given else core.tensor(values, dtype=dtype, device=device)
    if dtype is not None or device is not None:
        tensor = tensor.to(device or tensor.device, dtype or tensor.dtype)
    return tensor.detach().requires_grad_() if requires_grad else tensor


def _integers(
    name: str, argument: str, places: Any, like: Any, cut: bool = False, dtype: Any = core.int64
) -> Any:
    tensor = places if isinstance(places, Tensor) else core.tensor(places, device="cpu")
    if tensor.numel() == 0:
        tensor = tensor.to(core.int64)
    integer = tensor.dtype in (core.int64, core.int32, core.int16, core.int8, core.uint8)
    if tensor.is_complex() if cut else not integer:
        expected = "a real" if cut else "an integer"
        raise TypeError(f"{name}: argument {argument!r} has dtype {tensor.dtype}, expected {expected} one")
    return tensor.detach().to(like.device, dtype)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor of coordinates; what stands at one place several times is added up.

    Args:
        indices: (sparse dims, nnz) integers, or a shape alone for a tensor of zeros; fractions are cut off.
        values: (nnz, dense dims...).
        size: the shape; by default the least that holds all places.
        dtype, device: of the values; by default their own.
        requires_grad: whether the values are a leaf of their own that takes a gradient.
        is_coalesced: whether every place is named once, in order, which is not checked.

    Raises:
        RuntimeError: parts that do not fit together, or a place outside of ``size``.

    Example:
        >>> taeda.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    name = "sparse_coo_tensor"
    if values is None:
        shape = tuple(indices if indices is not None else size)
        shown = core.empty(shape, dtype=dtype, device="meta", requires_grad=requires_grad)
        return without_elements(name, shown, "sparse_coo", device)
    elements = _values(name, values, dtype, device, requires_grad)
    places = _integers(name, "indices", indices, elements, cut=True)
    if elements.ndim == 0:  # of the one place that there is
        elements = elements.reshape(1)
    if places.ndim != 2 or places.shape[1] != elements.shape[0]:
        raise RuntimeError(
            f"{name}: found indices of shape {tuple(places.shape)} and values of shape {tuple(elements.shape)}, "
            "expected (sparse dims, nnz) and (nnz, dense dims...)"
        )
    dims, known = places.shape[0], _blocks.known(places, size)
    least = [int(n) + 1 for n in places.amax(1).tolist()] if places.shape[1] and known else [0] * dims
    shape = tuple(size) if size is not None else (*least, *elements.shape[1:])
    if len(shape) != dims + elements.ndim - 1 or tuple(shape[dims:]) != tuple(elements.shape[1:]):
        raise RuntimeError(
            f"{name}: argument 'size' is {tuple(shape)}, expected {dims} sizes and {tuple(elements.shape[1:])}"
        )
    outside = next((d for d in range(dims) if least[d] > shape[d]), None)
    if outside is not None:
        raise RuntimeError(
            f"{name}: found index {least[outside] - 1} in dimension {outside} of size {shape[outside]}"
        )
    if places.numel() and known and int(places.min()) < 0:
        raise RuntimeError(f"{name}: found a negative index, {int(places.min())}")
    ordered = bool(is_coalesced) or places.shape[1] < 2
    return SparseTensor.around((places,), elements, shape, "sparse_coo", ordered)


def _compressed(
    name: str,
    way: str,
    outer: Any,
    inner: Any,
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> SparseTensor:
    elements = _values(name, values, dtype, device, requires_grad)
    by_rows = way in ("sparse_csr", "sparse_bsr")
    names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    given = (outer, inner)
    narrow = all(isinstance(p, Tensor) and p.dtype == core.int32 for p in given)
    index = core.int32 if narrow else core.int64
    starts, places = (_integers(name, n, p, elements, dtype=index) for n, p in zip(names, given, strict=True))
    if way in _blocks.BLOCKS:
        shape = _blocks.check_parts(name, way, starts, places, elements, size)
        _check_starts(name, names[0], starts, places)
        return SparseTensor.around((starts, places), elements, shape, way, True)
    batch = tuple(starts.shape[:-1])
    fits = starts.ndim == places.ndim > 0 and starts.shape[-1] > 0 and tuple(places.shape[:-1]) == batch
    if not fits or tuple(elements.shape[: places.ndim]) != tuple(places.shape):
        raise ValueError(
            f"{name}: found {names[0]} of shape {tuple(starts.shape)}, {names[1]} of shape {tuple(places.shape)} and "
            f"values of shape {tuple(elements.shape)}, expected (..., n + 1), (..., nnz) and (..., nnz, dense dims...)"
        )
    lines, known = starts.shape[-1] - 1, _blocks.known(places, size)
    widest = int(places.max()) + 1 if places.numel() and known else 0
    least = (lines, widest) if way == "sparse_csr" else (widest, lines)
    shape = tuple(size) if size is not None else (*batch, *least, *elements.shape[len(batch) + 1 :])
    line, across = (0, 1) if way == "sparse_csr" else (1, 0)
    line, across = line + len(batch), across + len(batch)
    if len(shape) != 1 + elements.ndim or shape[line] != lines or shape[: len(batch)] != batch:
        raise ValueError(
            f"{name}: argument 'size' is {shape}, expected {(*batch, lines)} in dimension {line} and before"
        )
    if widest > shape[across] or (places.numel() and known and int(places.min()) < 0):
        raise IndexError(f"{name}: found {names[1]} up to {widest - 1}, expected 0 to {shape[across] - 1}")
    _check_starts(name, names[0], starts, places)
    return SparseTensor.around((starts, places), elements, shape, way, True)


def _check_starts(name: str, argument: str, starts: Any, places: Any) -> None:
    if starts.device.type == "meta":
        return
    rising = bool((starts[..., 1:] >= starts[..., :-1]).all())
    if bool((starts[..., 0] != 0).any()) or bool((starts[..., -1] != places.shape[-1]).any()) or not rising:
        raise ValueError(
            f"{name}: argument {argument!r} must rise from 0 to the number of values, {places.shape[-1]}"
        )


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A matrix of compressed rows: where each row begins, the column of each element, its value.

    Several matrices with as many elements each may stand together: all parts have the dimensions of the batch in front.

    Args:
        crow_indices: (..., rows + 1) rising from 0 to nnz.
        col_indices: (..., nnz).
        values: (..., nnz).
        size: the shape; by default the least that holds all places.
        dtype, device, requires_grad: as in `sparse_coo_tensor`.

    Raises:
        ValueError: parts that do not fit together.
        IndexError: a column outside of ``size``.
    """
    return _compressed(
        "sparse_csr_tensor",
        "sparse_csr",
        crow_indices,
        col_indices,
        values,
        size,
        dtype,
        device,
        requires_grad,
    )


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """As `sparse_csr_tensor`, with columns and rows exchanged."""
    return _compressed(
        "sparse_csc_tensor",
        "sparse_csc",
        ccol_indices,
        row_indices,
        values,
        size,
        dtype,
        device,
        requires_grad,
    )


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A matrix of compressed rows of blocks: where each row of blocks begins, the column of each block, the blocks.

    Args:
        crow_indices: (rows of blocks + 1,) rising from 0 to nnz.
        col_indices: (nnz,).
        values: (nnz, rows of a block, columns of a block).
        size: the shape; by default the least that holds all blocks.
        dtype, device, requires_grad: as in `sparse_coo_tensor`.

    Raises:
        ValueError: parts that do not fit together.
        IndexError: a block outside of ``size``.

    Example:
        >>> taeda.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0], [3.0, 4.0]]]).to_dense()
        tensor([[0., 0., 1., 2.],
                [0., 0., 3., 4.]])
    """
    parts = (crow_indices, col_indices, values, size, dtype, device, requires_grad)
    return _compressed("sparse_bsr_tensor", "sparse_bsr", *parts)


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """As `sparse_bsr_tensor`, with columns and rows exchanged."""
    parts = (ccol_indices, row_indices, values, size, dtype, device, requires_grad)
    return _compressed("sparse_bsc_tensor", "sparse_bsc", *parts)


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """`sparse_csr_tensor` or one of its like for columns and blocks, by ``layout``.

    Raises:
        ValueError: another layout.
    """
    way = str(layout).rpartition(".")[2]
    if way not in ("sparse_csr", "sparse_csc", *_blocks.BLOCKS):
        raise ValueError(
            f"sparse_compressed_tensor: argument 'layout' is {layout}, expected sparse_csr, sparse_csc, sparse_bsr or "
            "sparse_bsc"
        )
    return _compressed(
        "sparse_compressed_tensor",
        way,
        compressed_indices,
        plain_indices,
        values,
        size,
        dtype,
        device,
        requires_grad,
    )


def without_elements(name: str, shown: Any, layout: Any, device: Any, like: Any = None) -> SparseTensor:
    """A sparse tensor of zeros, which holds none of them.

    Args:
        name: of the function that is asked for it.
        shown: a tensor on meta of the shape and dtype; whether it takes a gradient holds for the result.
        layout: one of the sparse layouts.
        device: of the result; None for that of ``like``, or the default one.
        like: a tensor on whose device the result is.

    Raises:
        NotImplementedError: a layout of blocks, whose sizes nobody has said.
        RuntimeError: a compressed layout of less than two dimensions.
    """
    shape, way = tuple(shown.shape), str.__str__(layout)
    if way in _blocks.BLOCKS:
        raise NotImplementedError(
            f"{name}: layout {way} needs the size of blocks; use to_sparse(layout=, blocksize=)"
        )
    if way != "sparse_coo":
        _matrix(name, shown, batched=True)
    on = device if device is not None or like is None else like.device
    made = nothing(way, shape, shown.dtype, on)
    return made.requires_grad_() if shown.requires_grad else made


def nothing(
    way: str, shape: tuple[int, ...], dtype: Any, device: Any, dense_dim: int = 0, blocksize: Any = None
) -> SparseTensor:
    """A sparse tensor that holds no element, of that layout, with `dense_dim` dimensions of each element."""
    count = len(shape) - dense_dim
    dense = tuple(shape[count:])
    if way == "sparse_coo":
        places: tuple[Any, ...] = (core.empty((count, 0), dtype=core.int64, device=device),)
        values = core.empty((0, *dense), dtype=dtype, device=device)
        return SparseTensor.around(places, values, tuple(shape), way, True)
    batch, block = tuple(shape[: count - 2]), () if way not in _blocks.BLOCKS else tuple(blocksize)
    line = 0 if way in ("sparse_csr", "sparse_bsr") else 1
    lines = shape[count - 2 + line] // (block[line] if block else 1)
    places = (
        core.zeros((*batch, lines + 1), dtype=core.int64, device=device),
        core.empty((*batch, 0), dtype=core.int64, device=device),
    )
    values = core.empty((*batch, 0, *block, *dense), dtype=dtype, device=device)
    return SparseTensor.around(places, values, tuple(shape), way, True)


# Of dense tensors


def broadcast(x: SparseTensor, shape: tuple[int, ...]) -> SparseTensor:
    """``x`` as coordinates in a shape that it broadcasts to: places are repeated in front and where it has one."""
    x = coo(x)
    places, values, count = x._places[0], x._elements, x._places[0].shape[0]
    front = len(shape) - len(x.shape)
    own = (1,) * front + tuple(x.shape)
    places = core.cat([places.new_zeros((front, places.shape[1])), places])
    for d in range(front + count):
        if own[d] == shape[d]:
            continue
        if own[d] != 1:
            raise RuntimeError(
                f"broadcast_to: found shape {tuple(x.shape)}, which does not broadcast to {shape}"
            )
        each = places.shape[1]
        places = places.repeat(1, shape[d])
        places[d] = core.arange(shape[d], device=places.device).repeat_interleave(each)
        values = values.repeat(shape[d], *(1,) * (values.ndim - 1))
    values = values.expand(values.shape[0], *shape[front + count :])
    return SparseTensor.around((places,), values, tuple(shape), "sparse_coo", False)


def elements_at(dense: Any, places: Any) -> Any:
    """Elements of a dense tensor at places (dims, nnz), where no dims mean the whole tensor."""
    if places.shape[0]:
        return dense[tuple(places)]
    return dense.unsqueeze(0).expand(places.shape[1], *dense.shape)


def dense_to_sparse(
    self: Any,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> SparseTensor:
    """The elements that are not zero, with their places.

    Args:
        sparse_dim: how many of the first dimensions are sparse; all by default.
        layout: sparse_coo by default.
        blocksize: rows and columns of a block, for layouts of blocks.
        dense_dim: how many of the last dimensions an element of another layout has.
    """
    way = str(layout).rpartition(".")[2]
    if dense_dim is not None and way != "sparse_coo" and layout is not None:
        return _compress(self, way, dense_dim, blocksize)
    if dense_dim is not None and sparse_dim is None:
        sparse_dim = self.ndim - dense_dim
    dims = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= self.ndim:
        raise RuntimeError(f"to_sparse: argument 'sparse_dim' is {sparse_dim}, expected 0 to {self.ndim}")
    if blocksize is not None and layout is None:
        raise RuntimeError(
            f"to_sparse: argument 'blocksize' is {blocksize}, and layout sparse_coo has no blocks"
        )
    there = self.detach() != 0
    if dims < self.ndim:
        there = there.flatten(dims).any(-1)
    places = there.nonzero().t().contiguous()
    values = elements_at(self, places)
    made = SparseTensor.around((places,), values, tuple(self.shape), "sparse_coo", True)
    return made_of(self, made if layout is None else to_layout(made, layout, blocksize))


def dense_to_sparse_coo(self: Any) -> SparseTensor:
    """The elements that are not zero, with their places."""
    return dense_to_sparse(self)


def _matrix(name: str, x: Any, batched: bool = False) -> Any:
    if x.ndim < 2 or (x.ndim > 2 and not batched):
        raise RuntimeError(
            f"{name}: found shape {tuple(x.shape)}, expected a matrix{' or several' * batched}"
        )
    return x


def dense_to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """The tensor itself, or in ``dtype``: it is dense."""
    return self if dtype is None else self.to(dtype)


def _compress(self: Any, way: str, dense_dim: int | None, blocksize: Any = None) -> SparseTensor:
    """The elements, or blocks, of matrices (..., rows, columns, dense dims...) that are not zero."""
    dims = self.ndim - (dense_dim or 0)
    if dims > self.ndim or dims < 2:
        raise RuntimeError(
            f"to_{way}: found shape {tuple(self.shape)} and 'dense_dim' {dense_dim}, expected a matrix or several "
            "before the dense dimensions"
        )
    return made_of(self, to_layout(dense_to_sparse(self, dims), way, blocksize))


def dense_to_sparse_csr(self: Any, dense_dim: int | None = None) -> SparseTensor:
    """The elements of matrices (..., rows, columns, dense dims...) that are not zero, by rows.

    Args:
        dense_dim: how many of the last dimensions an element has; none by default.

    Raises:
        RuntimeError: `self` is no matrix, or matrices have unlike numbers of elements.
    """
    return _compress(self, "sparse_csr", dense_dim)


def dense_to_sparse_csc(self: Any, dense_dim: int | None = None) -> SparseTensor:
    """The elements of matrices (..., rows, columns, dense dims...) that are not zero, by columns.

    Args:
        dense_dim: how many of the last dimensions an element has; none by default.

    Raises:
        RuntimeError: `self` is no matrix, or matrices have unlike numbers of elements.
    """
    return _compress(self, "sparse_csc", dense_dim)


def dense_to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """The blocks of matrices in which not all is zero, by rows; ``blocksize`` are rows and columns of one."""
    return _compress(self, "sparse_bsr", dense_dim, blocksize)


def dense_to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
    """The blocks of matrices in which not all is zero, by columns."""
    return _compress(self, "sparse_bsc", dense_dim, blocksize)


@sparse("sparse_mask")
def dense_sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the places of ``mask``."""
    if not isinstance(mask, SparseTensor):
        raise TypeError(f"sparse_mask: argument 'mask' is a {type(mask).__name__}, expected a sparse tensor")
    if isinstance(self, SparseTensor):
        self = self.to_dense()
    values = elements_at(self, coo(mask)._places[0])
    if mask._way in _blocks.BLOCKS:
        values = values.reshape(mask._elements.shape)
    elif mask._way != "sparse_coo":
        values = values.reshape(*mask._places[1].shape, *values.shape[1:])
    return _with(mask, values)


# Of sparse tensors


def _flat(places: Any, sizes: tuple[int, ...]) -> Any:
    """Places (dims, nnz) as one number each."""
    result = core.zeros(places.shape[1], dtype=core.int64, device=places.device)
    for part, size in zip(places, sizes, strict=True):
        result = result * size + part
    return result


def _unflat(flat: Any, sizes: tuple[int, ...]) -> Any:
    parts = []
    for size in reversed(sizes):
        parts.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    return (
        core.stack(parts[::-1])
        if parts
        else core.empty((0, flat.shape[0]), dtype=core.int64, device=flat.device)
    )


def wide(x: SparseTensor) -> tuple[Any, Any]:
    """The places of a compressed tensor as int64, in which all are computed."""
    starts, inner = x._places
    return starts.to(core.int64), inner.to(core.int64)


def narrowed(x: SparseTensor, like: SparseTensor) -> SparseTensor:
    """``x`` with places of the dtype that those of ``like`` have, where both are compressed."""
    dtype = like._places[0].dtype
    if "sparse_coo" not in (x._way, like._way) and x._places[0].dtype != dtype:
        x._places = tuple(p.to(dtype) for p in x._places)
    return x


def as_given(made: SparseTensor, like: SparseTensor) -> SparseTensor:
    """``made`` in the layout of ``like``."""
    return made if like._way == "sparse_coo" else narrowed(to_layout(made, like._way), like)


def coo(x: SparseTensor) -> SparseTensor:
    """``x`` as coordinates."""
    if x._way == "sparse_coo":
        return x
    starts, inner = wide(x)
    batch, dims = tuple(starts.shape[:-1]), starts.ndim - 1
    count = math.prod(batch)
    each = core.arange(starts.shape[-1] - 1, device=starts.device).repeat(count)
    lines, across = each.repeat_interleave(starts.diff().flatten()), inner.flatten()
    of = core.arange(count, device=starts.device).repeat_interleave(inner.shape[-1])
    by_rows = x._way in ("sparse_csr", "sparse_bsr")
    places = core.stack([lines, across] if by_rows else [across, lines])
    if dims:
        places = core.cat([_unflat(of, batch), places])
    values = x._elements.flatten(0, dims)
    if x._way in _blocks.BLOCKS:
        places, values = _blocks.spread(places, values)
    return SparseTensor.around((places,), values, tuple(x.shape), "sparse_coo", False)


def coalesced(x: SparseTensor) -> SparseTensor:
    """``x`` as coordinates in order, every place once."""
    x = coo(x)
    if x._ordered:
        return x
    places, values = x._places[0], x._elements
    sizes = tuple(x.shape[: places.shape[0]])
    found, inverse = core.unique(_flat(places, sizes), return_inverse=True)
    total = core.zeros((found.shape[0], *values.shape[1:]), dtype=values.dtype, device=values.device)
    return SparseTensor.around(
        (_unflat(found, sizes),), total.index_add(0, inverse, values), tuple(x.shape), "sparse_coo", True
    )


def to_layout(x: SparseTensor, layout: Any, blocksize: Any = None) -> Any:
    """``x`` in another layout; "strided" is a dense tensor. Blocks keep their size where no other is given."""
    way = str(layout).rpartition(".")[2]
    if isinstance(blocksize, int):  # one number counts for rows and columns
        blocksize = (blocksize, blocksize)
    if blocksize is not None and way not in _blocks.BLOCKS:
        raise RuntimeError(f"to_sparse: argument 'blocksize' is {blocksize}, and layout {way} has no blocks")
    if x._way in _blocks.BLOCKS and blocksize is None:
        blocksize = _blocks.block_size(x)
    if way == x._way and (way not in _blocks.BLOCKS or tuple(blocksize) == _blocks.block_size(x)):
        return x
    if way == "strided":
        return to_dense(x)
    if way == "sparse_coo":
        return coalesced(x)
    if way in _blocks.BLOCKS:
        return narrowed(_blocks.from_coordinates(coalesced(x), way, blocksize, f"to_{way}"), x)
    if way not in ("sparse_csr", "sparse_csc"):
        raise NotImplementedError(
            f"to_sparse: layout {layout} is not there; there are sparse_coo, sparse_csr, sparse_csc, sparse_bsr, "
            "sparse_bsc"
        )
    ordered = coalesced(x)
    places, values, dims = ordered._places[0], ordered._elements, ordered._places[0].shape[0] - 2
    if dims < 0:
        raise RuntimeError(f"to_sparse: {way} is for matrices, found shape {tuple(x.shape)}")
    batch, (line, inner) = (
        tuple(x.shape[:dims]),
        places[dims:] if way == "sparse_csr" else places[dims:].flip(0),
    )
    lines, count = x.shape[dims if way == "sparse_csr" else dims + 1], math.prod(batch)
    if dims:
        line = _flat(places[:dims], batch) * lines + line
    if way == "sparse_csc":
        order = core.argsort(line, stable=True)
        line, inner, values = line[order], inner[order], values[order]
    ends = core.bincount(line, minlength=count * lines).reshape(*batch, lines).cumsum(-1)
    if dims and bool((ends[..., -1:] * count != values.shape[0]).any()):
        raise RuntimeError(
            f"to_sparse: {way} holds as many elements of each matrix; Expect the same number of specified elements per "
            "batch."
        )
    starts = core.cat([ends.new_zeros((*batch, 1)), ends], -1)
    each = (*batch, values.shape[0] // max(count, 1))
    parts = (starts, inner.reshape(each).contiguous()), values.reshape(*each, *values.shape[1:])
    return narrowed(SparseTensor.around(*parts, tuple(x.shape), way, True), x)


@sparse("to_dense")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """All elements, zeros too."""
    x = coo(self)
    places, values = x._places[0], x._elements if dtype is None else x._elements.to(dtype)
    sizes = tuple(x.shape[: places.shape[0]])
    empty = core.zeros((math.prod(sizes), *values.shape[1:]), dtype=values.dtype, device=values.device)
    return empty.index_add(0, _flat(places, sizes), values).reshape(tuple(x.shape))
