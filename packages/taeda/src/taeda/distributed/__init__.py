"""Groups of processes that train together, on one machine or several.

Processes find each other through a store (`TCPStore`, `FileStore`), and send tensors over sockets. The parts are loaded
when a program first asks for one of their names: most programs only ask whether there is a group.
"""

from __future__ import annotations

from typing import Any

from taeda_registry import processes


def is_available() -> bool:
    """Whether process groups exist: True."""
    return True


def is_initialized() -> bool:
    """Whether there is a group of all processes."""
    return processes.default is not None


_FILES = frozenset({
    "algorithms", "autograd", "checkpoint", "constants", "device_mesh", "distributed_c10d", "fsdp", "launch", "nn",
    "optim", "pipelining", "remote_device", "rpc", "run", "tensor",
})  # fmt: skip
_PRIVATE = frozenset({
    "_all_gather_base", "_reduce_scatter_base", "_get_default_group", "_get_process_group_name", "_rank_not_in_group",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__all__":  # what a program imports by a star
        return _public()
    if name.startswith("__"):
        raise AttributeError(f"module 'taeda.distributed' has no attribute {name!r}")
    from importlib import import_module

    from taeda import _distributed_names

    if name in _FILES or _distributed_names.has(name):
        return import_module(f"taeda.distributed.{name}")
    if name == "GradBucket":  # hooks of communication name it in their annotations
        from taeda_registry.slots import nn

        return nn.parallel.distributed.GradBucket
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(import_module("taeda.distributed.device_mesh"), name)
    if name == "_remote_device":
        return import_module("taeda.distributed.remote_device")._remote_device
    if name in _distributed_names.TOP:
        return _distributed_names.top(name)
    if name in _PRIVATE or not name.startswith("_"):
        groups = import_module("taeda.distributed.distributed_c10d")
        if name in _PRIVATE or name in groups.__all__:
            return getattr(groups, name)
    raise AttributeError(f"module 'taeda.distributed' has no attribute {name!r}")


def _public() -> list[str]:
    """Names without an underscore in front."""
    from taeda import _distributed_names
    from taeda.distributed import distributed_c10d

    modules = ("constants", "device_mesh", "distributed_c10d", "rendezvous")
    own = ("DeviceMesh", "init_device_mesh", "is_available", "is_initialized")
    return sorted(
        name
        for name in {*distributed_c10d.__all__, *_distributed_names.TOP, *modules, *own}
        if not name.startswith("_")
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *_public()})
