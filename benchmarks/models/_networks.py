"""The classes of taeda-models for either library: they use public names alone, so the same sources run on both."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


@cache
def networks(torch: Any) -> ModuleType:
    """taeda_models for taeda; for another library a second copy, imported with it where the slots' providers stand."""
    if torch.__name__ == "taeda":
        return import_module("taeda_models")
    slots = ModuleType("taeda_registry.slots")
    slots.tensor, slots.nn = torch, torch.nn  # type: ignore[attr-defined]
    import_module("taeda_registry.slots")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_bound(name)}
    sys.modules[slots.__name__] = slots
    try:
        return import_module("taeda_models")
    finally:
        for name in [name for name in sys.modules if _is_bound(name)]:
            del sys.modules[name]
        sys.modules.update(kept)


def _is_bound(name: str) -> bool:
    return name == "taeda_registry.slots" or name.partition(".")[0] == "taeda_models"
