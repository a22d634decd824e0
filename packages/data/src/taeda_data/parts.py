"""What a data set holds, as far as it is looked through."""

from __future__ import annotations

from typing import Any

DEPTH = 4  # how far into a data set is looked
_WIDTH = 64


def parts_of(value: Any) -> list[Any]:
    """The items of a container, the values of a dict or an object's attributes; none where there are many."""
    if isinstance(value, dict):
        inner: Any = value.values()
    elif isinstance(value, (list, tuple)):
        inner = value
    else:
        inner = getattr(value, "__dict__", {}).values()
    return list(inner) if len(inner) <= _WIDTH else []
