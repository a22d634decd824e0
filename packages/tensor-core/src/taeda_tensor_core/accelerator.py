"""The accelerator of this machine, whichever it is, for programs that do not name one."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, backends

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

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

    for name in (*_C._reserved_devices(), *backends.names()):
        if name not in _HOST and DeviceModule(name).is_available():
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


def _module() -> Any:
    """What `taeda.<device>` is for the accelerator.

    Raises:
        RuntimeError: There is none.
    """
    found = current_accelerator()
    if found is None:
        raise RuntimeError(
            "accelerator: no accelerator is available; ask taeda.accelerator.is_available() first"
        )
    from taeda_tensor_core.device_module import get_device_module

    return get_device_module(found)


def current_device_index() -> int:
    """Index of the accelerator's current device."""
    return _module().current_device()


def set_device_index(device: Any, /) -> None:
    """Make one of the accelerator's devices the current one."""
    _module().set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


def device_index(device: int | None, /) -> Any:
    """Context in which one of the accelerator's devices is the current one; None changes nothing."""
    from contextlib import nullcontext

    return nullcontext() if device is None else _module().device(device)


def current_stream(device: Any = None, /) -> Any:
    """This thread's current stream of the accelerator."""
    return _module().current_stream(device)


def set_stream(stream: Any) -> None:
    """Make a stream this thread's current one."""
    _module().set_stream(stream)


def empty_cache() -> None:
    """Give memory that is kept for reuse back to the system; nothing without an accelerator."""
    if is_available():
        _module().empty_cache()


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of the accelerator's memory."""
    return _module().mem_get_info(device)


def memory_stats(device: Any = None, /) -> dict[str, Any]:
    """What the accelerator's backend counts; nothing without an accelerator."""
    return _module().memory_stats(device) if is_available() else {}


def _count(name: str) -> Any:
    def counted(device: Any = None, /) -> int:
        return getattr(_module(), name)(device) if is_available() else 0

    counted.__name__ = counted.__qualname__ = name
    counted.__doc__ = "Bytes that the accelerator's backend counts; 0 without an accelerator."
    return counted


memory_allocated, max_memory_allocated = _count("memory_allocated"), _count("max_memory_allocated")
memory_reserved, max_memory_reserved = _count("memory_reserved"), _count("max_memory_reserved")


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Begin to count peaks anew; nothing without an accelerator."""
    if is_available():
        _module().reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Begin to count anew; nothing without an accelerator."""
    if is_available():
        _module().reset_accumulated_memory_stats(device)
