"""Tensors that lie over the processes of a mesh: each has a part, all have all of it, or each has a summand."""

from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.distributed.tensor._api import (
    DTensor,
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from taeda.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    from taeda import _distributed_names

    if name in ("parallel", "experimental", "debug"):
        return import_module(f"taeda.distributed.tensor.{name}")
    return _distributed_names.child("tensor", name)
