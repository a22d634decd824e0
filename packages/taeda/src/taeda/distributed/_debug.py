"""How much groups of processes check and tell, as programs set it: nothing reads it."""

from __future__ import annotations

import os
from enum import Enum


class DebugLevel(Enum):
    """How much groups of processes check and tell."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_debug_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level that was set, or that TORCH_DISTRIBUTED_DEBUG of the environment names; nothing reads it."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if _debug_level is None and name not in DebugLevel.__members__:
        raise RuntimeError(
            f"get_debug_level: TORCH_DISTRIBUTED_DEBUG is {name!r}, expected one of {', '.join(DebugLevel.__members__)}"
        )
    return DebugLevel[name] if _debug_level is None else _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    global _debug_level
    _debug_level = level


def set_debug_level_from_env() -> None:
    """Let the environment say it again."""
    global _debug_level
    _debug_level = None
