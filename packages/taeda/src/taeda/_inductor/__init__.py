"""Settings that programs make for a code generator that is not there."""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.compiler import _Config, cudagraph_mark_step_begin

__all__ = [
    "aot_compile", "aoti_compile_and_package", "aoti_load_package", "config", "cudagraph_mark_step_begin",
    "list_mode_options", "list_options",
]  # fmt: skip

globals().update(
    _absent.functions(
        "taeda._inductor",
        "aot_compile aoti_compile_and_package aoti_load_package",
        "there is no compiler; taeda.export.save and load keep a program as a file",
    )
)

config = _Config("taeda._inductor.config", triton=_Config("taeda._inductor.config.triton"))


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What a mode of `compile` sets: nothing."""
    return {}


def list_options() -> list[str]:
    """Names of settings: none that anything reads."""
    return []


def __getattr__(name: str) -> Any:
    if name == "utils":
        from importlib import import_module

        return import_module(f"taeda._inductor.{name}")
    raise AttributeError(f"module 'taeda._inductor' has no attribute {name!r}")
