"""Programs as graphs of what a module did with example inputs.

`export` runs the module once; `ExportedProgram.module()` is a module made of the graph, which no longer needs the
module's class. Its graph reads parameters where PyTorch's has them among the inputs, and its functions are taeda's
public ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _absent
from taeda.export import graph_signature
from taeda.export._program import ExportedProgram, UnflattenedModule, export, load, save, unflatten

__all__ = [
    "AdditionalInputs", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "ShapesCollection", "UnflattenedModule", "default_decompositions",
    "dims", "draft_export", "export", "export_for_training", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip

_REASON = "sizes of exported programs follow from the program, and need no description"

ExportBackwardSignature = graph_signature.ExportBackwardSignature
ExportGraphSignature = graph_signature.ExportGraphSignature
ShapesCollection = _absent.cls("taeda.export.ShapesCollection", _REASON)
AdditionalInputs = _absent.cls("taeda.export.AdditionalInputs", _REASON)
draft_export = export_for_training = export


def default_decompositions() -> dict[Any, Any]:
    """What operators are taken apart into when a program is exported: nothing is."""
    return {}


class _DimHint:
    """What an exporter is told about a size."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self._kind})"


class Dim:
    """A size with a name and bounds, as programs describe the inputs of an exporter.

    Multiples of it, and it with a number added, are sizes too.

    Args:
        name: Its name.
        min: Smallest value.
        max: Largest value.
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, max
        if high is not None and high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__, self.min, self.max = name, low, high

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


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let containers of this class be taken apart by `utils._pytree`."""
    from taeda.utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
