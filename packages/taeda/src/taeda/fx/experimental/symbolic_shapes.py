"""Questions about sizes that may be symbols: here they are numbers, and a condition on them is true or false."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition that depends on numbers not known yet; never raised here."""


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether a value has symbols: False."""
    return False


def guard_or_true(a: Any) -> bool:
    """Whether a condition holds."""
    return bool(a)


guard_or_false = guard_size_oblivious = statically_known_true = guard_or_true
