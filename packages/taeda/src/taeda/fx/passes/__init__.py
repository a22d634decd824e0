"""Passes over graphs."""

from typing import Any

_MODULES = frozenset({"graph_drawer", "infra", "shape_prop", "split_module", "utils"})


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"taeda.fx.passes.{name}")
    raise AttributeError(f"module 'taeda.fx.passes' has no attribute {name!r}")
