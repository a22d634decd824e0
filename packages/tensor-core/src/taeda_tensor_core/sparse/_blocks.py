"""Sparse matrices of blocks: compressed rows (BSR) or columns (BSC) of small dense matrices.

The blocks are values of shape (batch..., nnz, rows of a block, columns of a block, dense dims...); places are numbers
of blocks. What is computed goes through single elements.
"""

from __future__ import annotations

import math
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._tensor import SparseTensor

#: Layouts of blocks, and which of their dimensions is compressed.
BLOCKS = {"sparse_bsr": 0, "sparse_bsc": 1}
PARTS = {"sparse_bsr": ("crow_indices", "col_indices"), "sparse_bsc": ("ccol_indices", "row_indices")}


def block_size(x: SparseTensor) -> tuple[int, int]:
    """Rows and columns of a block."""
    inner = x._places[1].ndim
    return int(x._elements.shape[inner]), int(x._elements.shape[inner + 1])


def spread(places: Any, values: Any) -> tuple[Any, Any]:
    """Places of elements and the elements, from places (dims, nnz) of blocks and the blocks.

    The last two dimensions of places are block row and block column.
    """
    height, width = values.shape[1], values.shape[2]
    down = core.arange(height, device=places.device).reshape(1, height, 1)
    across = core.arange(width, device=places.device).reshape(1, 1, width)
    shape = (places.shape[1], height, width)
    *batch, rows, columns = (p.reshape(-1, 1, 1) for p in places)
    every = [*batch, rows * height + down, columns * width + across]
    return core.stack([p.expand(shape).reshape(-1) for p in every]), values.flatten(0, 2)


def from_coordinates(x: SparseTensor, way: str, blocksize: Any, name: str) -> SparseTensor:
    """Coordinates in order as blocks; a block is there where one of its elements is.

    Raises:
        RuntimeError: No size of blocks, or one that does not divide the shape; no matrix; matrices of a batch that
            have unlike numbers of blocks.
    """
    places, values, dims = x._places[0], x._elements, x._places[0].shape[0] - 2
    if dims < 0:
        raise RuntimeError(f"{name}: {way} is for matrices, found shape {tuple(x.shape)}")
    batch, (rows, columns) = tuple(x.shape[:dims]), x.shape[dims : dims + 2]
    height, width = _checked(blocksize, (rows, columns), name)
    block = (places[dims] // height, places[dims + 1] // width)
    sizes = (rows // height, columns // width)
    line, other = BLOCKS[way], 1 - BLOCKS[way]
    count, others = sizes[line], max(sizes[other], 1)
    of = core.zeros_like(places[0])
    for part, size in zip(places[:dims], batch, strict=True):
        of = of * size + part
    found, which = core.unique((of * count + block[line]) * others + block[other], return_inverse=True)
    flat = (which * height + places[dims] % height) * width + places[dims + 1] % width
    size = (found.shape[0] * height * width, *values.shape[1:])
    blocks = core.zeros(size, dtype=values.dtype, device=values.device).index_add(0, flat, values)
    several = math.prod(batch)
    ends = (
        core.bincount(found // others, minlength=several * count).reshape(*batch, count).cumsum(-1)
        if several * count
        else found.new_zeros((*batch, count))
    )
    each = found.shape[0] // max(several, 1)
    if dims and count and bool((ends[..., -1] != each).any()):
        raise RuntimeError(
            f"{name}: {way} holds as many blocks of each matrix; Expect the same number of specified elements per "
            "batch."
        )
    starts = core.cat([ends.new_zeros((*batch, 1)), ends], -1)
    inner = (found % others).reshape(*batch, each)
    blocks = blocks.reshape(*batch, each, height, width, *values.shape[1:])
    return SparseTensor.around((starts, inner), blocks, tuple(x.shape), way, True)


def _checked(blocksize: Any, shape: tuple[int, ...], name: str) -> tuple[int, int]:
    if blocksize is None:
        raise RuntimeError(f"{name}: argument 'blocksize' is missing: rows and columns of a block")
    sizes = tuple(int(n) for n in blocksize)
    if len(sizes) != 2 or min(sizes) < 1:
        raise RuntimeError(f"{name}: argument 'blocksize' must be two positive sizes, found {sizes}")
    if shape[0] % sizes[0] or shape[1] % sizes[1]:
        raise RuntimeError(
            f"{name}: the shape {tuple(shape)} must be divisible by argument 'blocksize' {sizes}"
        )
    return sizes[0], sizes[1]


def known(places: Any, size: Any) -> bool:
    """Whether the numbers of places can be checked: on meta there are none, and the size has to be given."""
    return size is None or places.device.type != "meta"


def check_parts(name: str, way: str, starts: Any, places: Any, elements: Any, size: Any) -> tuple[int, ...]:
    """The shape of one or several matrices of blocks.

    Raises:
        ValueError: Parts that do not fit together.
        IndexError: A block outside of `size`.
    """
    names = PARTS[way]
    batch, dims = tuple(starts.shape[:-1]), starts.ndim - 1
    fits = starts.ndim == places.ndim > 0 and starts.shape[-1] > 0 and tuple(places.shape[:-1]) == batch
    if not fits or elements.ndim < dims + 3:
        raise ValueError(
            f"{name}: found {names[0]} of shape {tuple(starts.shape)}, {names[1]} of shape {tuple(places.shape)} and "
            f"values of shape {tuple(elements.shape)}, expected (..., n + 1), (..., nnz) and "
            "(..., nnz, rows, columns, dense dims...)"
        )
    if tuple(places.shape) != tuple(elements.shape[: dims + 1]):
        raise ValueError(
            f"{name}: found {names[1]} of shape {tuple(places.shape)} and values of shape {tuple(elements.shape)}, "
            "expected one block for each place"
        )
    height, width = int(elements.shape[dims + 1]), int(elements.shape[dims + 2])
    checked = known(places, size)
    lines, widest = starts.shape[-1] - 1, int(places.max()) + 1 if places.numel() and checked else 0
    rows, columns = (lines, widest) if way == "sparse_bsr" else (widest, lines)
    least = (*batch, rows * height, columns * width, *elements.shape[dims + 3 :])
    shape = tuple(size) if size is not None else least
    if len(shape) != len(least) or 0 in (height, width) or shape[dims] % height or shape[dims + 1] % width:
        raise ValueError(
            f"{name}: argument 'size' is {shape}, expected multiples of the blocks {height, width}"
        )
    line, other = BLOCKS[way], 1 - BLOCKS[way]
    blocks = (shape[dims] // height, shape[dims + 1] // width)
    if blocks[line] != lines or shape[:dims] != batch:
        raise ValueError(
            f"{name}: argument 'size' is {shape}, expected {lines} blocks in dimension {line + dims} and {batch} before"
        )
    if widest > blocks[other] or (places.numel() and checked and int(places.min()) < 0):
        raise IndexError(f"{name}: found {names[1]} up to {widest - 1}, expected 0 to {blocks[other] - 1}")
    return shape
