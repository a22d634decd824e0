"""Settings of symbolic sizes, which nothing reads but programs."""

from __future__ import annotations

from enum import IntEnum

from taeda.compiler import _Config, _settings


class AggressiveGuardFreeMode(IntEnum):
    """How far sizes are reasoned about without asking for their numbers."""

    DISABLED = 0
    VALUE_RANGE_ANALYSIS = 1
    SKIP_RANGE_ANALYSIS = 2


_Config(__name__, AggressiveGuardFreeMode=AggressiveGuardFreeMode, **_settings.SHAPES)
