"""Compilers of graphs: those that programs bring, and what takes a graph as it is."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("common", "debugging", "registry"):
        from importlib import import_module

        return import_module(f"taeda._dynamo.backends.{name}")
    raise AttributeError(f"module 'taeda._dynamo.backends' has no attribute {name!r}")
