"""Questions about sizes that may be symbols: here they are numbers, and a condition on them is true or false."""

from __future__ import annotations

from typing import Any

from taeda import _absent

__all__ = [
    "GuardOnDataDependentSymNode",
    "ShapeEnv",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_bool",
    "guard_float",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_scalar",
    "guard_size_oblivious",
    "has_free_symbols",
    "hint_int",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """A branch on elements of a tensor, in a program that is exported."""


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


ShapeEnv = _absent.cls("taeda.fx.experimental.symbolic_shapes.ShapeEnv", "sizes are numbers")


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a number: True."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int


def is_symbolic(val: Any) -> bool:
    """Whether a size is a symbol: False."""
    return False


def guard_scalar(a: Any) -> Any:
    """The number itself."""
    return a


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The size itself."""
    return int(a)


guard_int, guard_float, guard_bool = int, float, bool
