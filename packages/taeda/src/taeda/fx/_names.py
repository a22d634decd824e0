"""Names by which programs reach functions and classes."""

from __future__ import annotations

import builtins
import operator
import sys
from typing import Any

__all__ = ["is_reached", "qualified_name"]


def qualified_name(func: Any) -> str:
    """The dotted name of a function or class, with `torch` for this library, as programs write it.

    Example:
        >>> qualified_name(taeda.relu)
        'torch.relu'
    """
    name = getattr(func, "__name__", None)
    if name is None:
        return type(func).__qualname__
    if getattr(builtins, name, None) is func:
        return name
    if getattr(operator, name, None) is func:
        return f"operator.{name}"
    own = _own_name(func, name)
    if own is not None:
        return own.replace("taeda", "torch", 1)
    module = getattr(func, "__module__", None) or "builtins"
    return f"{module}.{getattr(func, '__qualname__', name)}"


def _own_name(func: Any, name: str) -> str | None:
    """The name of one of this library's own functions and classes; None for what is others'."""
    import taeda

    if not str(getattr(func, "__module__", None) or "taeda").startswith("taeda"):
        return None
    if getattr(taeda, name, None) is func:
        return f"taeda.{name}"
    functional = taeda.nn.functional
    if getattr(functional, name, None) is func:
        return f"taeda.nn.functional.{name}"
    from taeda.overrides import resolve_name

    found = resolve_name(func)
    return found if found is not None and found.startswith("taeda.") else None


def is_reached(path: str, value: Any) -> bool:
    """Whether a dotted name that begins with a module leads to a value."""
    head, *rest = path.split(".")
    found = sys.modules.get("taeda" if head == "torch" else head)
    for part in rest:
        found = getattr(found, part, None)
    return found is value
