"""A state carried over slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._higher_order_ops._slices import sliced, stacked
from taeda.utils import _pytree

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Carry a state over the slices of `xs`: `state, y = combine_fn(state, x)` for each.

    Args:
        combine_fn: Takes the state and a slice; gives the next state, of the same structure, and an output.
        init: The first state: a tensor or a tree of tensors.
        xs: A tensor, or a tree of tensors of one size along `dim`, which is not zero.
        dim: The dimension.
        reverse: Begin at the end; outputs stand in the order of the slices all the same.

    Returns: The last state, and the outputs stacked along dimension `dim`.

    Raises:
        RuntimeError: `xs` are no such tensors, there is no slice, or the structure of the state changes.

    Example:
        >>> scan(lambda s, x: (s + x, s + x), taeda.tensor(0), taeda.arange(4))[1]
        tensor([0, 1, 3, 6])
    """
    slices, count = sliced("scan", xs, dim)
    if not count:
        raise RuntimeError(f"scan: argument 'xs' has no slice along dimension {dim}")
    state, outputs, kind = init, [], _pytree.tree_flatten(init)[1]
    for x in reversed(slices) if reverse else slices:
        state, output = combine_fn(state, x)
        if _pytree.tree_flatten(state)[1] != kind:
            raise RuntimeError("scan: the state that 'combine_fn' gives is not of the structure of 'init'")
        outputs.append(output)
    return state, stacked(outputs[::-1] if reverse else outputs, dim)
