"""A function of every slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda._higher_order_ops._slices import sliced, stacked

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """What `f(x, *args)` gives for every slice `x` of the first dimension of `xs`, stacked.

    Args:
        f: Takes a slice and `args`; gives a tensor or a tree of tensors, of the same shapes every time.
        xs: A tensor, or a tree of tensors of one size along the first dimension, which is not zero.
        *args: Passed on.

    Returns: A tree like that of `f`, its tensors with the first dimension of `xs`.

    Raises:
        RuntimeError: `xs` are no such tensors, or there is no slice.

    Example:
        >>> map(lambda x, y: x * y, taeda.arange(3), taeda.tensor(2))
        tensor([0, 2, 4])
    """
    slices, count = sliced("map", xs)
    if not count:
        raise RuntimeError("map: argument 'xs' has no slice along its first dimension")
    return stacked([f(x, *args) for x in slices])
