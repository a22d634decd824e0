"""Questions about sizes that may be symbols: here they are numbers, and a condition on them is true or false."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConstraintViolationError",
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
    "guarding_hint_or_throw",
    "has_free_symbols",
    "has_free_unbacked_symbols",
    "has_static_value",
    "hint_int",
    "is_concrete_bool",
    "is_concrete_float",
    "is_concrete_int",
    "is_symbolic",
    "optimization_hint",
    "statically_known_false",
    "statically_known_true",
    "sym_and",
    "sym_eq",
    "sym_or",
]


class ConstraintViolationError(RuntimeError):
    """A size of an example is not what was said of it."""


class GuardOnDataDependentSymNode(RuntimeError):
    """A branch on elements of a tensor, in a program that is exported."""


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether a value has symbols: False."""
    return False


has_free_unbacked_symbols = has_free_symbols


def guard_or_true(a: Any) -> bool:
    """Whether a condition holds."""
    return bool(a)


guard_or_false = guard_size_oblivious = statically_known_true = guard_or_true


def statically_known_false(x: Any) -> bool:
    """Whether a condition does not hold."""
    return not x


def sym_and(x: Any, *others: Any) -> bool:
    """Whether all conditions hold."""
    return bool(x) and all(map(bool, others))


def sym_or(x: Any, *others: Any) -> bool:
    """Whether one of the conditions holds."""
    return bool(x) or any(map(bool, others))


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two sizes are equal, or two lists of them.

    Raises:
        AssertionError: One is a list and the other is none.
    """
    lists = isinstance(x, (tuple, list)), isinstance(y, (tuple, list))
    if lists[0] != lists[1]:
        raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")
    return bool(tuple(x) == tuple(y) if lists[0] else x == y)


def has_static_value(a: Any) -> bool:
    """Whether a size is a number: True."""
    return True


class ShapeEnv:
    """What programs give to `FakeTensorMode`: it keeps nothing, sizes are numbers.

    Args:
        **settings: Accepted.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


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


def guarding_hint_or_throw(a: Any) -> Any:
    """The size itself."""
    return a


def optimization_hint(a: Any, fallback: Any = None) -> Any:
    """The size itself."""
    return a


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The size itself."""
    return int(a)


guard_int, guard_float, guard_bool = int, float, bool
