"""Types of containers by what they contain."""

from __future__ import annotations

import types
import typing
from typing import Any


def matches(value: Any, target: Any) -> bool:
    """Whether a value is of a type, a tuple of types, or a generic of list, tuple, dict, Optional or Union."""
    if isinstance(target, tuple):
        return any(matches(value, one) for one in target)
    if target is None:
        return value is None
    origin, inner = typing.get_origin(target), typing.get_args(target)
    if origin is None:
        return isinstance(value, target)
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in inner)
    return isinstance(value, origin) and _items_match(value, origin, inner)


def _items_match(value: Any, origin: Any, inner: tuple) -> bool:
    if origin is list:
        return all(matches(item, inner[0]) for item in value)
    if origin is dict:
        return all(matches(key, inner[0]) and matches(item, inner[1]) for key, item in value.items())
    if origin is tuple:
        kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
        return len(kinds) == len(value) and all(map(matches, value, kinds))
    return True


class Attribute(tuple):
    """A value and its type, as (`value`, `type`)."""

    __slots__ = ()

    def __new__(cls, value: Any, type: Any) -> Attribute:
        return super().__new__(cls, (value, type))

    def __getnewargs__(self) -> tuple[Any, Any]:
        return self[0], self[1]

    value = property(lambda self: self[0])
    type = property(lambda self: self[1])
