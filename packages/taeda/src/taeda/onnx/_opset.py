"""How modules of opsets answer."""

from __future__ import annotations

from taeda import _absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def absent_operator(name: str) -> Any:
    """A function of that name, whose call says that there is no exporter."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _absent.function(f"taeda.onnx.{name}", "operators are written by taeda.onnx.export itself")
