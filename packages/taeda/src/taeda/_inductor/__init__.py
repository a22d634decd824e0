"""Settings that programs make for a code generator that is not there."""

from __future__ import annotations

from typing import Any

from taeda.compiler import _Config, cudagraph_mark_step_begin

__all__ = ["config", "cudagraph_mark_step_begin", "list_mode_options", "list_options"]

config = _Config("taeda._inductor.config", triton=_Config("taeda._inductor.config.triton"))


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What a mode of `compile` sets: nothing."""
    return {}


def list_options() -> list[str]:
    """Names of settings: none that anything reads."""
    return []
