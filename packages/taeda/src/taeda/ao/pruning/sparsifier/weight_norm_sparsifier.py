"""Blocks of weights with the smallest norms are masked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taeda.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from taeda_registry.slots import nn, tensor

__all__ = ["WeightNormSparsifier"]

_NORMS: dict[int, Callable[[Any], Any]] = {1: lambda x: x.abs(), 2: lambda x: x * x}


class WeightNormSparsifier(BaseSparsifier):
    """Masks the blocks whose elements have the smallest norm in the mean.

    Args:
        sparsity_level: Share of the blocks.
        sparse_block_shape: Rows and columns of a block; blocks begin at the matrix's first element.
        zeros_per_block: How many elements of such a block are masked, the smallest ones; all by default.
        norm: 1, 2 (the default), or a function from the matrix to the sizes of its elements.

    Raises:
        NotImplementedError: Another norm.
        ValueError: A number of zeros that no block has, when masks are renewed.

    Example:
        >>> sparsifier = WeightNormSparsifier(0.5, (1, 4))
        >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Any], Any] | int | None = None,
    ) -> None:
        found = norm if callable(norm) else _NORMS.get(2 if norm is None else norm)
        if found is None:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        self.norm_fn = found
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": math.prod(sparse_block_shape)
                if zeros_per_block is None
                else zeros_per_block,
            }
        )

    def update_mask(
        self,
        module: nn.Module,
        tensor_name: str,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int = 4,
        **kwargs: Any,
    ) -> None:
        count = math.prod(sparse_block_shape)
        if zeros_per_block > count:
            raise ValueError(
                "Number of zeros per block cannot be more than the total number of elements in that block."
            )
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = tensor.ones_like(mask)
            return
        sizes = self.norm_fn(getattr(module, tensor_name))
        kept = _kept_blocks(sizes, sparsity_level, sparse_block_shape)
        if zeros_per_block < count:
            kept = kept | _kept_in_blocks(sizes, sparse_block_shape, zeros_per_block)
        mask.data = kept.to(mask.dtype)


def _blocks(sizes: Any, shape: tuple[int, int]) -> Any:
    """A matrix as (rows of blocks, columns of blocks, elements of a block); NaN where a block goes beyond it."""
    (height, width), (rows, columns) = sizes.shape[-2:], shape
    down, across = -(-height // rows), -(-width // columns)
    padded = tensor.full((down * rows, across * columns), math.nan, dtype=sizes.dtype, device=sizes.device)
    padded[:height, :width] = sizes
    return (
        padded.reshape(down, rows, across, columns).permute(0, 2, 1, 3).reshape(down, across, rows * columns)
    )


def _unblocked(blocks: Any, like: Any, shape: tuple[int, int]) -> Any:
    """The matrix of such blocks."""
    (height, width), (rows, columns) = like.shape[-2:], shape
    down, across = blocks.shape[:2]
    whole = blocks.reshape(down, across, rows, columns).permute(0, 2, 1, 3)
    return whole.reshape(down * rows, across * columns)[:height, :width].contiguous()


def _kept_blocks(sizes: Any, level: float, shape: tuple[int, int]) -> Any:
    """True but in the share of blocks with the smallest means."""
    blocks = _blocks(sizes, shape)
    means = blocks.nanmean(-1).flatten()
    count = len(means) if level >= 1 else max(0, min(len(means) - 1, round(level * len(means))))
    kept = tensor.ones(means.shape, dtype=tensor.bool, device=means.device)
    kept[means.topk(count, largest=False)[1]] = False
    return _unblocked(kept.reshape(*blocks.shape[:2], 1).expand(blocks.shape), sizes, shape)


def _kept_in_blocks(sizes: Any, shape: tuple[int, int], zeros: int) -> Any:
    """True but at so many of each block's smallest elements."""
    blocks = _blocks(sizes, shape)
    smallest = blocks.nan_to_num(math.inf).topk(zeros, dim=-1, largest=False)[1]
    kept = tensor.ones(blocks.shape, dtype=tensor.bool, device=blocks.device)
    return _unblocked(kept.scatter(-1, smallest, False), sizes, shape)
