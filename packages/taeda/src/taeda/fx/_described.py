"""What texts of graphs tell besides the program: dtypes and shapes, and the lines that nodes come from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda.fx.node import Node

__all__ = ["Lines", "kind_of"]

_SHORT = {
    "bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i",
}  # fmt: skip
_FRAME = re.compile(r'File "(?P<file>[^\n]*)", line (?P<line>\d+), in (?P<name>[^\n]*)\n\s*(?P<code>[^\n]*)')


def _dtype(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2]
    if name == "bool":
        return "b8"
    word = name.rstrip("0123456789") if "_" not in name else "float"
    return _SHORT.get(word, word) + name[len(word) :].replace("_", "")


def kind_of(node: Node) -> str:
    """The text of what a node gives, `"f32[2, 3]"` or `"Sym(s0)"`; empty where that is not known."""
    value = next((node.meta[key] for key in ("val", "example_value") if key in node.meta), None)
    if isinstance(value, tensor.SymInt):
        return f'"Sym({value})"'
    found = value if isinstance(value, tensor.Tensor) else node.meta.get("tensor_meta")
    shape, dtype = getattr(found, "shape", None), getattr(found, "dtype", None)
    if isinstance(found, (list, dict)) or shape is None or dtype is None:
        return ""
    return f'"{_dtype(dtype)}[{", ".join(map(str, shape))}]"'


class Lines:
    """Comments before nodes that come from other lines of the program than those before them."""

    def __init__(self) -> None:
        self._last: str | None = None

    def before(self, node: Node) -> str:
        """The comment before a node; empty where none is due."""
        trace = node.stack_trace or ""
        if trace == self._last:
            return ""
        self._last = trace
        if not trace:
            return "\n# No stacktrace found for following nodes\n"
        found = list(_FRAME.finditer(trace))
        if not found:
            return ""
        last = found[-1]
        return f"\n# File: {last['file']}:{last['line']} in {last['name']}, code: {last['code']}\n"
