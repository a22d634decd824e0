"""Sizes with names and bounds, as programs describe what may vary in the inputs of an exporter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Dim", "dims"]


class _DimHint:
    """What an exporter is told about a size; a call gives one with bounds."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self._kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if self._kind == "STATIC":
            raise TypeError("Dim.STATIC: a size that stays as it is has no bounds")
        return _DimHint(self._kind, min, max)

    def __repr__(self) -> str:
        given = (f", {name}={value}" for name in ("min", "max") if (value := getattr(self, name)) is not None)
        return f"DimHint({self._kind}{''.join(given)})"


class Dim:
    """A size with a name and bounds, as programs describe the inputs of an exporter.

    Multiples of it, and it with a number added, are sizes too.

    Args:
        name: Its name.
        min: Smallest value.
        max: Largest value.

    Attributes:
        root, factor, shift: The size is `factor*root + shift`, and `root` itself where it is derived from no other.
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        low, high = 0 if min is None else min, max
        if high is not None and high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__, self.min, self.max = name, low, high
        self.root, self.factor, self.shift = self, 1, 0

    def __repr__(self) -> str:
        if not self.__name__.isidentifier():
            return self.__name__  # what is derived from another
        bounds = [f"min={self.min}"] if self.min in (0, 1) or self.min > 2 else []
        bounds += [] if self.max is None else [f"max={self.max}"]
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"

    def _derived(self, sign: str, number: Any, bound: Callable[[int], int]) -> Dim:
        if type(number) is not int:
            raise NotImplementedError(
                f"Dim: expected an int beside {self.__name__} {sign}, found {type(number).__name__}: sizes are "
                "multiples of one size, moved by a number"
            )
        text = f"{number}*{self.__name__}" if sign == "*" else f"{self.__name__} {sign} {number}"
        made = Dim.__new__(Dim)
        made.__name__, made.min = text, bound(self.min)
        made.max = None if self.max is None else bound(self.max)
        made.root = self.root
        made.shift = bound(self.shift)
        made.factor = self.factor * number if sign == "*" else self.factor
        return made

    def __add__(self, other: int) -> Dim:
        return self._derived("+", other, lambda size: size + other)

    def __sub__(self, other: int) -> Dim:
        return self._derived("-", other, lambda size: size - other)

    def __mul__(self, other: int) -> Dim:
        if type(other) is int and other <= 0:
            raise NotImplementedError(f"Dim: argument of {self.__name__} * must be positive, found {other}")
        return self._derived("*", other, lambda size: size * other)

    __radd__, __rmul__ = __add__, __mul__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes with names and the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)
