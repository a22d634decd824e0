"""Settings that may be one number or one per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str) -> Callable[[Any], tuple]:
    def parse(value: Any) -> tuple:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def one_or_tuple(value: tuple | None) -> Any:
    """The number itself when all entries are equal: the short form for a representation."""
    return value[0] if isinstance(value, tuple) and value and all(v == value[0] for v in value) else value
