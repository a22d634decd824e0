"""Meshes of devices of several processes, as names."""

from taeda import _absent

DeviceMesh = _absent.cls("taeda.distributed.DeviceMesh", "there are no process groups")
init_device_mesh = _absent.function("taeda.distributed.init_device_mesh", "there are no process groups")
