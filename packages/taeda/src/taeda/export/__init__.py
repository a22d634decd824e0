"""Exported programs, as names: there is no exporter."""

from __future__ import annotations

from taeda import _absent

_REASON = "there is no exporter of programs; save the state_dict"

ExportedProgram = _absent.cls("taeda.export.ExportedProgram", _REASON)
ShapesCollection = _absent.cls("taeda.export.ShapesCollection", _REASON)
AdditionalInputs = _absent.cls("taeda.export.AdditionalInputs", _REASON)
UnflattenedModule = _absent.cls("taeda.export.UnflattenedModule", _REASON)
globals().update(
    _absent.functions(
        "taeda.export", "default_decompositions draft_export export load save unflatten", _REASON
    )
)


class _DimHint:
    """What an exporter is told about a size."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self._kind})"


class Dim:
    """A size with a name and bounds, as programs describe the inputs of an exporter.

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


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes with names and the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let containers of this class be taken apart by `utils._pytree`."""
    from taeda.utils import _pytree

    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
