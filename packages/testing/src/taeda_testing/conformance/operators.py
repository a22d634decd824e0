"""What the tensor provider says of its operators: which exist, and which a backend must implement."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from taeda_registry.slots import tensor


@dataclass(frozen=True)
class Operator:
    """An operator under its Python name, all overloads taken together.

    Attributes:
        group: ``core`` (a backend must have a kernel), ``optional`` (a kernel makes it faster), or ``composite``.
    """

    name: str
    group: str
    family: str


@cache
def declared() -> dict[str, Operator]:
    """Operators by Python name, from the ``ops.json`` that the provider carries; empty when it has none."""
    module = tensor.Tensor.__module__.partition(".")[0]
    file = files(module).joinpath("ops.json")
    if not file.is_file():
        return {}
    overloads: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in json.loads(file.read_text(encoding="utf-8")):
        overloads[entry["name"].partition(".")[0]].append(entry)
    return {
        name: Operator(name, _group(entries), entries[0]["family"]) for name, entries in overloads.items()
    }


def _group(entries: list[dict[str, Any]]) -> str:
    if any(entry.get("core") is True for entry in entries):
        return "core"
    optional = any(entry.get("kind") in ("structured", "direct") for entry in entries)
    return "optional" if optional else "composite"
