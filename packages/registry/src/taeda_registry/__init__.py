"""Component slots of taeda: what can be replaced, by whom, and who is active.

A *slot* names a part of the library (``tensor``, ``nn``, ``optim`` ...), an *interface* says what a part must offer,
and a *provider* is a module that offers it. Packages ask for a part with ``from taeda_registry.slots import tensor``.
"""

from taeda_registry import forks as _forks  # noqa: F401 (forks wait for imports)
from taeda_registry.errors import (
    InterfaceMismatchError,
    ProviderFailedError,
    ProviderNotFoundError,
    RegistryError,
    UnknownSlotError,
)
from taeda_registry.resolution import active, resolve
from taeda_registry.selection import use
from taeda_registry.table import Slot, add_slot, get_slot, slot_names

__version__ = "0.1.0"


def include_dir() -> str:
    """Folder to compile C plug-ins against: `#include <taeda/abi.h>`.

    Example:
        >>> taeda_registry.include_dir()
        '/.../taeda_registry/include'
    """
    from pathlib import Path

    return str(Path(__file__).resolve().parent / "include")


__all__ = [
    "InterfaceMismatchError",
    "ProviderFailedError",
    "ProviderNotFoundError",
    "RegistryError",
    "Slot",
    "UnknownSlotError",
    "active",
    "add_slot",
    "get_slot",
    "include_dir",
    "resolve",
    "slot_names",
    "use",
]
