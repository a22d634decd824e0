"""A function of the elements of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the elements of lists, one after another; what is no list is passed every time.

    Returns: A list of results; a tuple of lists where `op` gives tuples.

    Raises:
        ValueError: There is no list, or they are of several lengths.

    Example:
        >>> foreach_map(taeda.add, [taeda.tensor(1), taeda.tensor(2)], 3)
        [tensor(4), tensor(5)]
    """
    lengths = {len(a) for a in (*args, *kwargs.values()) if isinstance(a, list | tuple)}
    if len(lengths) != 1:
        raise ValueError(f"foreach_map: expected lists of one length, found lengths {sorted(lengths)}")

    def item(value: Any, i: int) -> Any:
        return value[i] if isinstance(value, list | tuple) else value

    made = [
        op(*(item(a, i) for a in args), **{name: item(a, i) for name, a in kwargs.items()})
        for i in range(lengths.pop())
    ]
    return (
        tuple(list(part) for part in zip(*made, strict=True)) if made and isinstance(made[0], tuple) else made
    )
