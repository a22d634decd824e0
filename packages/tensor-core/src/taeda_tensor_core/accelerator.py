"""The accelerator of this machine, whichever it is, for programs that do not name one."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, backends

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]

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
