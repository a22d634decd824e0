"""How processes that train together save time: compressed gradients; the rest as names."""

from __future__ import annotations

from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from taeda import _distributed_names

    if name in __all__:
        return getattr(import_module(f"{__name__}.join"), name)
    if name in ("_checkpoint", "ddp_comm_hooks", "join", "model_averaging"):
        return import_module(f"{__name__}.{name}")
    return _distributed_names.child("algorithms", name)
