"""Reductions of losses as numbers and as text, under the names that programs written for PyTorch import."""

from __future__ import annotations

from taeda_nn.functional.loss import legacy_reduction, reduction_code

__all__: list[str] = []


def get_enum(reduction: str) -> int:
    """The number of a reduction: 0 for 'none', 1 for 'mean', 2 for 'sum'; ValueError for others."""
    return reduction_code("get_enum", reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the deprecated arguments stand for."""
    if emit_warning:
        return legacy_reduction(True if size_average is None else size_average, reduce, "mean")
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Its number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
