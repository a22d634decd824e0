"""Containers taken apart as a form says, for programs that graphs are written as."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from taeda.fx.proxy import Proxy
from taeda.utils._pytree import PyTree, TreeSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["PyTree", "TreeSpec", "register_pytree_flatten_spec", "tree_flatten_spec"]

_parts_of: dict[type, Callable[[Any, Any], Sequence[Any]]] = {}


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """The parts of a container at the leaves of a form, as a list; of what stands for a container, its items.

    Args:
        pytree: A container of that form; a list counts as the tuple of a function's arguments.
        spec: The form.
    """
    given = tuple(pytree) if spec.type is tuple else pytree
    if not isinstance(given, tuple) or not any(isinstance(item, Proxy) for item in given):
        return list(spec.flatten_up_to(given))
    found: list[Any] = []
    for item, form in zip(given, spec.children(), strict=True):
        found += _items(item, form) if isinstance(item, Proxy) else form.flatten_up_to(item)
    return found


def _items(proxy: Any, spec: Any) -> list[Any]:
    """The parts of a container that a proxy stands for."""
    if spec.is_leaf():
        return [proxy]
    if spec.type in _parts_of:
        parts = _parts_of[spec.type](proxy, spec)
    elif issubclass(spec.type, dict):
        keys = spec.context[1] if issubclass(spec.type, defaultdict) else spec.context
        parts = [proxy[key] for key in keys]
    else:
        parts = [proxy[place] for place in range(spec.num_children)]
    return [leaf for part, form in zip(parts, spec.children(), strict=True) for leaf in _items(part, form)]


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[[Any, Any], Sequence[Any]],
    flatten_fn_exact_match_spec: Any = None,
) -> None:
    """Say how a container of a class is taken apart where a proxy stands for one.

    Others are taken apart as `utils._pytree` was told.

    Args:
        cls: The class.
        flatten_fn_spec: Gives the parts of a container, and of a proxy, by it and its form.
    """
    _parts_of[cls] = flatten_fn_spec
