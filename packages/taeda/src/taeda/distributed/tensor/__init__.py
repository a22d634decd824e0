"""Tensors spread over processes, as names: no tensor is one."""

from taeda import _absent
from taeda.distributed.device_mesh import DeviceMesh, init_device_mesh
from taeda.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "init_device_mesh",
]  # fmt: skip

_REASON = "there are no tensors spread over processes; DistributedDataParallel keeps a copy in each"
DTensor = _absent.cls("taeda.distributed.tensor.DTensor", _REASON)
distribute_tensor = _absent.function("taeda.distributed.tensor.distribute_tensor", _REASON)
distribute_module = _absent.function("taeda.distributed.tensor.distribute_module", _REASON)


def __getattr__(name: str) -> object:
    from taeda import _distributed_names

    return _distributed_names.child("tensor", name)
