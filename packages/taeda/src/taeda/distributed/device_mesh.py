"""Meshes of devices of several processes, as names."""

from taeda import _absent

_REASON = "groups are made with new_group; there are no tensors spread over processes"
DeviceMesh = _absent.cls("taeda.distributed.DeviceMesh", _REASON)
init_device_mesh = _absent.function("taeda.distributed.init_device_mesh", _REASON)
