"""Nodes of a graph, as names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _absent

if TYPE_CHECKING:
    from collections.abc import Callable

Target = Any
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex)
Node = _absent.cls("taeda.fx.Node", "there is no symbolic tracer")


def has_side_effect(fn: Any) -> Any:
    """Mark of a function whose calls are kept: the function itself."""
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every item of its lists, tuples, dicts and slices replaced by what `fn` makes of it."""
    if isinstance(a, tuple):
        items = (map_aggregate(item, fn) for item in a)
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(item, fn) for key, item in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every node in it replaced by what `fn` makes of it."""
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)
