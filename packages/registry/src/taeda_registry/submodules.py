"""Submodules of a provider: what ``import taeda.optim.lr_scheduler`` finds in the provider of ``optim``."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def is_package(module: ModuleType) -> bool:
    """Whether a module has files below it. A module-level ``__getattr__`` may hand out the folders of another package;
    what is found there would be loaded a second time."""
    return "__path__" in vars(module)


def submodule(module: ModuleType, name: str) -> ModuleType | None:
    """Return what a provider offers under ``import <module>.<name>``, or None.

    That is its submodule of that name: a file of the package, or an entry of ``sys.modules``. Where there is none, a
    module among its attributes stands for it, so that a provider can hand on modules of another package.

    Raises:
        Exception: Whatever importing the submodule raises.

    Example:
        >>> import taeda_optim
        >>> submodule(taeda_optim, "lr_scheduler") is taeda_optim.lr_scheduler
        True
    """
    from importlib.util import find_spec

    full_name = f"{module.__name__}.{name}"
    if full_name in sys.modules or (is_package(module) and find_spec(full_name) is not None):
        return import_module(full_name)
    value = getattr(module, name, None)
    return value if isinstance(value, ModuleType) else None
