"""Running results of an associative function along a dimension, in a logarithmic number of calls.

Source: Blelloch, "Prefix Sums and Their Applications", 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda.utils import _pytree

__all__ = ["associative_scan"]

Leaves = list[Any]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """All running results ``x[0]``, ``combine_fn(x[0], x[1])``, ... of the slices of ``xs`` along ``dim``.

    Args:
        combine_fn: Takes two trees like ``xs`` and gives one; it must be associative and work on many slices at once.
        xs: A tensor, or a tree of tensors of one size along ``dim``.
        dim: The dimension; every tensor has it.
        reverse: Begin at the end.
        combine_mode: 'pointwise' or 'generic'; one way serves both.

    Returns: A tree like ``xs``.

    Raises:
        ValueError: ``combine_fn`` cannot be called, there are no tensors, or their sizes along ``dim`` differ.

    Example:
        >>> associative_scan(taeda.add, taeda.arange(4), 0)
        tensor([0, 1, 3, 6])
    """
    if not callable(combine_fn) or combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"associative_scan: expected a function and 'pointwise' or 'generic', found {combine_fn!r}, {combine_mode}"
        )
    leaves, tree = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, taeda.Tensor) for leaf in leaves):
        raise ValueError("associative_scan: argument 'xs' must be a tensor or a tree of tensors")
    sizes = {leaf.size(dim) for leaf in leaves}
    if len(sizes) > 1:
        raise ValueError(
            f"associative_scan: tensors have sizes {sorted(sizes)} along dimension {dim}, expected one"
        )

    def combine(first: Leaves, second: Leaves) -> Leaves:
        joined = combine_fn(_pytree.tree_unflatten(first, tree), _pytree.tree_unflatten(second, tree))
        return _pytree.tree_leaves(joined)

    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        moved = [leaf.flip(0) for leaf in moved]
    found = _scan(combine, moved)
    if reverse:
        found = [leaf.flip(0) for leaf in found]
    return _pytree.tree_unflatten([leaf.movedim(0, dim) for leaf in found], tree)


def _scan(combine: Callable[[Leaves, Leaves], Leaves], leaves: Leaves) -> Leaves:
    """Along dimension 0: neighbours are joined, what they give is scanned, and the places between are filled in."""
    count = leaves[0].size(0)
    if count < 2:
        return leaves
    pairs = combine([leaf[: count - 1 : 2] for leaf in leaves], [leaf[1::2] for leaf in leaves])
    odd = _scan(combine, pairs)
    if count == 2:
        return [taeda.cat([leaf[:1], own]) for leaf, own in zip(leaves, odd, strict=True)]
    even = combine([leaf[: (count - 1) // 2] for leaf in odd], [leaf[2::2] for leaf in leaves])
    return [_interleaved(taeda.cat([leaf[:1], e]), o) for leaf, e, o in zip(leaves, even, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    """even[0], odd[0], even[1], ...; there may be one more of the former."""
    both = taeda.stack([even[: odd.size(0)], odd], 1).flatten(0, 1)
    return both if even.size(0) == odd.size(0) else taeda.cat([both, even[-1:]])
