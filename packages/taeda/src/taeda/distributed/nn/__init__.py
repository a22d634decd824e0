"""Operations of several processes through which gradients flow."""

from __future__ import annotations

from typing import Any

from taeda.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "RemoteModule":
        from taeda.distributed.nn.api.remote_module import RemoteModule

        return RemoteModule
    from taeda import _distributed_names

    return _distributed_names.child("nn", name)
