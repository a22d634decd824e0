"""What `taeda.func` has, under older and private names; settings for a compiler that is not there."""

from __future__ import annotations

from typing import Any

from taeda.compiler import _Config, _settings

__all__ = ["config"]

config = _Config("taeda._functorch.config", **_settings.FUNCTORCH)


def __getattr__(name: str) -> Any:
    if name in (
        "aot_autograd",
        "apis",
        "compilers",
        "eager_transforms",
        "functional_call",
        "make_functional",
        "vmap",
    ):
        from importlib import import_module

        return import_module(f"taeda._functorch.{name}")
    raise AttributeError(f"module 'taeda._functorch' has no attribute {name!r}")
