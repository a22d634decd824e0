"""Marks of functions by how long they stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Decorator that gives the function itself."""
    return lambda fn: fn
