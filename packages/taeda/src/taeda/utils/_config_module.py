"""Settings of a module that blocks of a program change and put back."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from taeda.compiler import _Config as ConfigModule

__all__ = ["Config", "ConfigModule", "install_config_module"]


def Config(
    default: Any = None, justknob: str | None = None, env_name_default: Any = None, **others: Any
) -> Any:
    """The value of a setting: of a variable of the environment where one is named and set, else the default.

    Args:
        default: The value. env_name_default, env_name_force: Names of variables, the second is looked for first.
        justknob, alias, value_type, deprecated: Accepted.
    """
    for names in (others.get("env_name_force"), env_name_default):
        for name in [names] if isinstance(names, str) else names or ():
            found = os.environ.get(name)
            if found is not None:
                return {"0": False, "1": True}.get(found, found)
    return default


def install_config_module(module: ModuleType) -> None:
    """Give a module what settings have: `patch`, `save_config`, `load_config` and others.

    Args:
        module: A module whose public names are settings; classes in it are parts.
    """
    for name, value in vars(module).copy().items():
        if isinstance(value, type) and not name.startswith("__") and value.__module__ == module.__name__:
            parts = {key: item for key, item in vars(value).items() if not key.startswith("__")}
            module.__dict__[name] = ConfigModule(f"{module.__name__}.{name}", **parts)
    module.__class__ = ConfigModule
    sys.modules.setdefault(module.__name__, module)
