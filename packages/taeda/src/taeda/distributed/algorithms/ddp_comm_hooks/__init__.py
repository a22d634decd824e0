"""Functions that average the gradients of `DistributedDataParallel`, for its `register_comm_hook`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("default_hooks", "debugging_hooks"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    from taeda import _distributed_names

    return _distributed_names.child("algorithms.ddp_comm_hooks", name)
