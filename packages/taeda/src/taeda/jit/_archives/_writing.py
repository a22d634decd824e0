"""Loaded programs as archives again: the same code, with the tensors and attributes of now."""

from __future__ import annotations

import ast
import enum
from typing import Any

from taeda.jit._archives._classes import LoadedModule, LoadedObject
from taeda_registry.slots import tensor


def archive_of(module: LoadedModule, extra: dict[str, bytes]) -> Any:
    """What a file with a module consists of."""
    archive, root = module._script_program.archive, _Objects().of(module)
    made = tensor.serialization.ScriptArchive
    return made(root, archive.code, archive.constants, archive.version, extra)


class _Objects:
    """What stands in a file for objects of loaded programs, once for each."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def of(self, value: Any, kind: ast.expr | None = None) -> Any:
        """What stands for a value of a type."""
        if isinstance(value, (LoadedModule, LoadedObject)):
            return self._known[id(value)] if id(value) in self._known else self._object(value)
        if isinstance(value, enum.Enum):
            return tensor.serialization.ScriptEnum(value._script_name, value.value)  # type: ignore[attr-defined]
        if isinstance(value, (tuple, list, dict)):
            return self._container(value, _without_optional(kind))
        return value

    def _container(self, value: Any, kind: Any) -> Any:
        inner = _inner_types(kind)
        if isinstance(value, tuple):
            kinds = inner if len(inner) == len(value) else [None] * len(value)
            return tuple(self.of(item, one) for item, one in zip(value, kinds, strict=True))
        last = inner[-1] if inner else None
        if isinstance(value, dict):
            made: Any = {key: self.of(item, last) for key, item in value.items()}
        else:
            made = [self.of(item, last) for item in value]
        return made if kind is None else tensor.serialization.ScriptTyped(made, ast.unparse(kind))

    def _object(self, value: Any) -> Any:
        kind = type(value)
        parts = tensor.serialization
        made = self._known[id(value)] = parts.ScriptObject(parts.ScriptClass(kind._script_name))
        if "__getstate__" in kind._script_methods:
            made.state = self.of(value.__getstate__())
        else:
            made.state = {
                name: self.of(getattr(value, name, None), one) for name, one in kind._script_types.items()
            }
        return made


def _inner_types(kind: Any) -> list[ast.expr]:
    if not isinstance(kind, ast.Subscript):
        return []
    return kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]


def _without_optional(kind: ast.expr | None) -> ast.expr | None:
    if isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name) and kind.value.id == "Optional":
        return kind.slice
    return kind if isinstance(kind, ast.Subscript) else None
