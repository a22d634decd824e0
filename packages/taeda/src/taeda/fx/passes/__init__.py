"""Passes over graphs."""

from typing import Any

_MODULES = frozenset({
    "fake_tensor_prop", "graph_drawer", "graph_manipulation", "infra", "operator_support", "param_fetch", "shape_prop",
    "split_module", "split_utils", "tools_common", "utils",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"taeda.fx.passes.{name}")
    raise AttributeError(f"module 'taeda.fx.passes' has no attribute {name!r}")
