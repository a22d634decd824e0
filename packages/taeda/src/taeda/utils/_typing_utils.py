"""A helper that programs import although its home is private."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(obj: T | None) -> T:
    """The value itself.

    Raises:
        TypeError: It is None.
    """
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj
