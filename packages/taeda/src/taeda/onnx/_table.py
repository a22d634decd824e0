"""The functions that write one function of a program each, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TABLE", "find", "writes"]

#: By name: the function of that name, or the method; those of nn.functional that differ stand behind "F.".
TABLE: dict[str, Callable[..., Any]] = {}


def writes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function for these names. It takes the writer and then the function's own arguments."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            TABLE[name] = function
        return function

    return enter


def find(name: str, functional: bool) -> Callable[..., Any] | None:
    """The function for a name, if there is one."""
    from taeda.onnx import _draws, _elementwise, _layers, _shapes, _sums  # noqa: F401

    if functional and f"F.{name}" in TABLE:
        return TABLE[f"F.{name}"]
    return TABLE.get(name)
