"""Whether packages are there."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

__all__ = ["check_module_exists", "dill_available", "import_dill"]


def check_module_exists(name: str) -> bool:
    """Whether a module can be found."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


_check_module_exists = check_module_exists


def dill_available() -> bool:
    """Whether dill is installed."""
    return check_module_exists("dill")


def import_dill() -> ModuleType | None:
    """dill; None where it is not installed."""
    return importlib.import_module("dill") if dill_available() else None
