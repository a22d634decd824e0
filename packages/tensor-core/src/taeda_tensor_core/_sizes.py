"""Sizes and dimensions: one whole number, of Python or of NumPy, or a sequence of them."""

from __future__ import annotations

from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_number(given: Any) -> bool:
    """Whether this is one whole number: an int, one of NumPy's, a tensor of 0 dimensions."""
    return isinstance(given, int) or (hasattr(type(given), "__index__") and getattr(given, "ndim", 0) == 0)


def as_tuple(given: Any) -> tuple[Any, ...]:
    """One number or a sequence, as a tuple of ints; what is no number in it stays what it is.

    Example:
        >>> as_tuple(3), as_tuple([3, 4])
        ((3,), (3, 4))
    """
    return tuple(index(n) if is_number(n) else n for n in ((given,) if is_number(given) else given))


def of_several(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a function was given as numbers one by one, or as one sequence of them, as a tuple of ints.

    Example:
        >>> of_several((3, 4)), of_several(([3, 4],))
        ((3, 4), (3, 4))
    """
    return as_tuple(given[0] if len(given) == 1 else given)
