"""Numbers that stand for all dimensions: Python's integers, and NumPy's, which programs compute sizes with."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def is_integer(value: Any) -> bool:
    """Whether it is one integer, not a sequence of them."""
    return isinstance(value, int) or (
        not isinstance(value, tuple | list) and isinstance(value, Integral)
    )  # the common forms are told quickly
