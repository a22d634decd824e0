"""The accelerator of this machine, whichever it is, for programs that do not name one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from taeda_tensor_core import _C, _plugins, backends

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
    "synchronize",
]  # fmt: skip

_HOST = ("cpu", "meta")


def current_accelerator(check_available: bool = True) -> Any:
    """The device that programs should compute on: the first reserved one that works, else the first that was loaded.

    Args:
        check_available: Accepted for PyTorch's sake; a device that does not work is never returned.

    Returns: A device, or None where there is none.

    Example:
        >>> device = taeda.accelerator.current_accelerator() or taeda.device("cpu")
    """
    from taeda_tensor_core.device_module import DeviceModule

    loaded = backends.names()
    there = {*loaded, *(point.name for point in _plugins.offered())}
    for name in (*_C._reserved_devices(), *loaded):
        if name not in _HOST and name in there and DeviceModule(name).is_available():
            return _C.device(name)
    return None


def is_available() -> bool:
    """Whether there is an accelerator."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many devices of the accelerator's kind there are."""
    found = current_accelerator()
    return 0 if found is None else backends.device_count(found.type)


def synchronize(device: Any = None) -> None:
    """Wait until the accelerator has done all its work; nothing without one."""
    found = current_accelerator() if device is None else device
    if found is not None:
        _C.synchronize(found)


# The current device, its stream and its memory, as the module of its kind has them.


def _module() -> Any:
    found = current_accelerator()
    if found is None:
        raise RuntimeError("accelerator: there is no accelerator here; ask is_available() first")
    from taeda_tensor_core.device_module import get_device_module

    return get_device_module(found.type)


def current_device_index() -> int:
    """Number of the accelerator's current device.

    Raises:
        RuntimeError: There is no accelerator.
    """
    return _module().current_device()


def set_device_index(device: Any, /) -> None:
    """Make another device of the accelerator's kind the current one.

    Raises:
        RuntimeError: There is no accelerator.
    """
    _module().set_device(device)


class device_index:
    """Context in which another device of the accelerator's kind is the current one; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device: Any = None, /) -> Any:
    """The stream that the device's work goes to.

    Raises:
        RuntimeError: There is no accelerator.
    """
    return _module().current_stream(device)


def set_stream(stream: Any) -> None:
    """Let the device's work go to a stream.

    Raises:
        RuntimeError: There is no accelerator.
    """
    _module().set_stream(stream)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What the device can do: ``supported_dtypes``.

    Raises:
        RuntimeError: There is no accelerator.
    """
    given = None if device is None or isinstance(device, int) else _C.device(device)
    kind = given or current_accelerator()
    if kind is None:
        raise RuntimeError("accelerator: there is no accelerator here; ask is_available() first")
    lacking = backends.lacks(kind.type)
    return {"supported_dtypes": {d for d in _dtypes() if d.name not in lacking}}


def _dtypes() -> list[Any]:
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    return [getattr(_C, name) for name in names.split()]


def empty_host_cache() -> None:
    """Nothing: no pinned memory is kept for later."""


def _memory(name: str, nothing: Any) -> Any:
    def function(device_index: Any = None, /) -> Any:
        if current_accelerator() is None:
            return nothing() if callable(nothing) else nothing
        given = () if device_index is None else (device_index,)
        return getattr(_module(), name)(*given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`{name}` of the accelerator's module; {nothing() if callable(nothing) else nothing!r} without one."
    )
    return function


empty_cache = _memory("empty_cache", None)
memory_allocated, memory_reserved = _memory("memory_allocated", 0), _memory("memory_reserved", 0)
max_memory_allocated = _memory("max_memory_allocated", 0)
max_memory_reserved = _memory("max_memory_reserved", 0)
memory_stats = _memory("memory_stats", dict)
reset_peak_memory_stats = _memory("reset_peak_memory_stats", None)
reset_accumulated_memory_stats = _memory("reset_accumulated_memory_stats", None)


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and all bytes of the device's memory.

    Raises:
        RuntimeError: There is no accelerator.
    """
    module = _module()
    return module.mem_get_info() if device_index is None else module.mem_get_info(device_index)


class Graph:
    """Work of an accelerator recorded to be done again; not there yet: making one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("accelerator.Graph is not there yet: run the work itself")


def _part(name: str, *members: str) -> ModuleType:
    """Names of this module under a further one, where PyTorch has them."""
    made = ModuleType(f"{__name__}.{name}", __doc__)
    made.__dict__.update({member: globals()[member] for member in members}, __all__=list(members))
    return made


memory = _part("memory", *(name for name in __all__ if "memory" in name or "cache" in name))
graphs = _part("graphs", "Graph")
