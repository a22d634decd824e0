"""Sparse matrices of blocks: compressed rows (BSR) or columns (BSC) of small dense matrices.

The blocks are values of shape (nnz, rows of a block, columns of a block); places are numbers of blocks. What is
computed goes through single elements.
"""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.sparse._tensor import SparseTensor

#: Layouts of blocks, and which of their dimensions is compressed.
BLOCKS = {"sparse_bsr": 0, "sparse_bsc": 1}
PARTS = {"sparse_bsr": ("crow_indices", "col_indices"), "sparse_bsc": ("ccol_indices", "row_indices")}


def block_size(x: SparseTensor) -> tuple[int, int]:
    """Rows and columns of a block."""
    return int(x._elements.shape[1]), int(x._elements.shape[2])


def lines_of(starts: Any) -> Any:
    """The compressed line of each value."""
    counts = starts[1:] - starts[:-1]
    return core.repeat_interleave(core.arange(starts.shape[0] - 1, device=starts.device), counts)


def as_coordinates(x: SparseTensor) -> SparseTensor:
    """All elements of all blocks as coordinates."""
    starts, inner = (p.to(core.int64) for p in x._places)
    lines = lines_of(starts)
    rows, columns = (lines, inner) if x._way == "sparse_bsr" else (inner, lines)
    height, width = block_size(x)
    down = core.arange(height, device=starts.device).reshape(1, height, 1)
    across = core.arange(width, device=starts.device).reshape(1, 1, width)
    shape = (lines.shape[0], height, width)
    places = core.stack(
        [
            (rows.reshape(-1, 1, 1) * height + down).expand(shape).reshape(-1),
            (columns.reshape(-1, 1, 1) * width + across).expand(shape).reshape(-1),
        ]
    )
    values = x._elements.flatten(0, 2)
    return SparseTensor.around((places,), values, tuple(x.shape), "sparse_coo", False)


def from_coordinates(x: SparseTensor, way: str, blocksize: Any, name: str) -> SparseTensor:
    """Coordinates in order as blocks; a block is there where one of its elements is.

    Raises:
        RuntimeError: No size of blocks, or one that does not divide the shape; no matrix.
    """
    if x._places[0].shape[0] != 2:
        raise RuntimeError(f"{name}: {way} is for matrices, found shape {tuple(x.shape)}")
    height, width = _checked(blocksize, x, name)
    places, values = x._places[0], x._elements
    lines, columns = x.shape[0] // height, x.shape[1] // width
    block = core.stack([places[0] // height, places[1] // width])
    line, inner = (block[0], block[1]) if way == "sparse_bsr" else (block[1], block[0])
    count, others = (lines, columns) if way == "sparse_bsr" else (columns, lines)
    found, which = core.unique(line * max(others, 1) + inner, return_inverse=True)
    flat = (which * height + places[0] % height) * width + places[1] % width
    size = (found.shape[0] * height * width, *values.shape[1:])
    blocks = core.zeros(size, dtype=values.dtype, device=values.device).index_add(0, flat, values)
    starts = core.zeros(count + 1, dtype=core.int64, device=values.device)
    starts[1:] = core.bincount(found // max(others, 1), minlength=count).cumsum(0)
    blocks = blocks.reshape(found.shape[0], height, width, *values.shape[1:])
    return SparseTensor.around((starts, found % max(others, 1)), blocks, tuple(x.shape), way, True)


def _checked(blocksize: Any, x: SparseTensor, name: str) -> tuple[int, int]:
    if blocksize is None:
        raise RuntimeError(f"{name}: argument 'blocksize' is missing: rows and columns of a block")
    sizes = tuple(int(n) for n in blocksize)
    if len(sizes) != 2 or min(sizes) < 1:
        raise RuntimeError(f"{name}: argument 'blocksize' must be two positive sizes, found {sizes}")
    if x.shape[0] % sizes[0] or x.shape[1] % sizes[1]:
        raise RuntimeError(
            f"{name}: the shape {tuple(x.shape[:2])} must be divisible by argument 'blocksize' {sizes}"
        )
    return sizes[0], sizes[1]


def check_parts(name: str, way: str, starts: Any, places: Any, elements: Any, size: Any) -> tuple[int, ...]:
    """The shape of a matrix of blocks.

    Raises:
        ValueError: Parts that do not fit together.
        IndexError: A block outside of `size`.
    """
    names = PARTS[way]
    if starts.ndim != 1 or places.ndim != 1 or starts.shape[0] < 1 or elements.ndim < 3:
        raise ValueError(
            f"{name}: found {names[0]} of shape {tuple(starts.shape)}, {names[1]} of shape {tuple(places.shape)} and "
            f"values of shape {tuple(elements.shape)}, expected (n + 1,), (nnz,) and (nnz, rows, columns, ...)"
        )
    if places.shape[0] != elements.shape[0]:
        raise ValueError(f"{name}: found {places.shape[0]} {names[1]} and {elements.shape[0]} values")
    height, width = int(elements.shape[1]), int(elements.shape[2])
    lines, widest = starts.shape[0] - 1, int(places.max()) + 1 if places.numel() else 0
    rows, columns = (lines, widest) if way == "sparse_bsr" else (widest, lines)
    shape = tuple(size) if size is not None else (rows * height, columns * width, *elements.shape[3:])
    if len(shape) != elements.ndim - 1 or shape[0] % height or shape[1] % width:
        raise ValueError(
            f"{name}: argument 'size' is {shape}, expected multiples of the blocks {height, width}"
        )
    line, other = BLOCKS[way], 1 - BLOCKS[way]
    blocks = (shape[0] // height, shape[1] // width)
    if blocks[line] != lines:
        raise ValueError(f"{name}: argument 'size' is {shape}, expected {lines} blocks in dimension {line}")
    if widest > blocks[other] or (places.numel() and int(places.min()) < 0):
        raise IndexError(f"{name}: found {names[1]} up to {widest - 1}, expected 0 to {blocks[other] - 1}")
    return shape
