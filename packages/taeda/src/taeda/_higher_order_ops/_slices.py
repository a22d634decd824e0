"""Slices of trees of tensors, and trees made of them."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.utils import _pytree

Trees = list[Any]


def sliced(operator: str, xs: Any, dim: int = 0) -> tuple[list[Any], int]:
    """The tree of every slice of a tree of tensors along a dimension, and how many there are."""
    leaves, tree = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, taeda.Tensor) and leaf.dim() for leaf in leaves):
        raise RuntimeError(f"{operator}: argument 'xs' must be tensors of at least one dimension")
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) > 1:
        raise RuntimeError(
            f"{operator}: tensors have sizes {sorted(sizes)} along dimension {dim}, expected one"
        )
    rows = zip(*(leaf.unbind(dim) for leaf in leaves), strict=True)
    return [_pytree.tree_unflatten(list(row), tree) for row in rows], sizes.pop()


def stacked(trees: Trees, dim: int = 0) -> Any:
    """One tree of trees of one kind, their tensors along a new dimension."""
    flat = [_pytree.tree_flatten(tree) for tree in trees]
    joined = [
        None if parts[0] is None else taeda.stack(list(parts), dim)
        for parts in zip(*(leaves for leaves, _ in flat), strict=True)
    ]
    return _pytree.tree_unflatten(joined, flat[0][1])
