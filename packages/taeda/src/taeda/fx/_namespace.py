"""Names of nodes, each given once."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)$")
_TAKEN = frozenset({"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"})


def snake_case(text: str) -> str:
    """A name in CamelCase with underscores; one in small letters stays."""
    made = []
    for index, char in enumerate(text):
        if char.isupper() and index and text[index - 1] not in "_." and not text[index - 1].isupper():
            made.append("_")
        made.append(char.lower())
    return "".join(made)


class Namespace:
    """Names that are in use, and the objects that some of them stand for."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name that nobody has, as close to `candidate` as that allows; an object keeps the one it has.

        Args:
            candidate: Any text.
            obj: What it is to stand for, or None.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _NUMBERED.match(candidate)
        base, number = (candidate, None) if match is None else (match[1], int(match[2]))
        if candidate in self._used_names:
            number = max(number or 0, self._base_count.get(base, 0))
        while candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number = (number or 0) + 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number or 0
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note what a name stands for."""
        self._obj_to_name.setdefault(obj, name)

    def _is_illegal_name(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in builtins.__dict__:
            return builtins.__dict__[name] is not obj
        return name in _TAKEN

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
