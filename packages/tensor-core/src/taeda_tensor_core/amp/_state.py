"""State of autocast on each thread. The layer that casts is loaded when it is first switched on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor


def accelerator_kind() -> str:
    """The kind of device that programs mean when they name none: the first reserved one."""
    return _C._reserved_devices()[0]


class _Thread(threading.local):
    """What one thread has switched on."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, Any] = {}
        self.nesting = 0
        self.caching = True
        #: By the tensor, the dtype and whether a graph is recorded: the tensor, its version, the cast.
        self.casts: dict[tuple[int, Any, bool], tuple[Tensor, int, Tensor]] = {}


_thread = _Thread()
#: Switches the layer on this thread; None until autocast is first on.
_include: Callable[[bool], None] | None = None


def _kind(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise TypeError(f"autocast: argument 'device_type' must be a str, found {type(device_type).__name__}")
    return device_type.partition(":")[0]


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a kind of device: the cpu, reserved kinds, and those that are there."""
    kind = _kind(device_type)
    return kind != "meta" and (kind in _C._reserved_devices() or kind in _C._backend_names())


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a kind of device on this thread; by default for the first reserved kind."""
    return _thread.enabled.get(accelerator_kind() if device_type is None else _kind(device_type), False)


def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast for a kind of device on this thread: (device_type, enabled).

    Or (enabled) for the first reserved kind.
    """
    kind, enabled = args if len(args) == 2 else (accelerator_kind(), *args)
    _thread.enabled[_kind(kind)] = bool(enabled)
    on = any(_thread.enabled.values())
    global _include
    if on and _include is None:
        from taeda_tensor_core.amp._casting import include as _include
    if _include is not None:
        _include(on)


def get_autocast_dtype(device_type: str) -> Any:
    """The lower precision for a kind of device: bfloat16 on the cpu, else float16, unless another was set."""
    kind = _kind(device_type)
    return _thread.dtypes.get(kind, _C.bfloat16 if kind == "cpu" else _C.float16)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Choose the lower precision for a kind of device on this thread."""
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"set_autocast_dtype: argument 'dtype' must be a dtype, found {type(dtype).__name__}")
    _thread.dtypes[_kind(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost block ends."""
    return _thread.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of parameters, or make them anew each time."""
    _thread.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget casts of parameters."""
    _thread.casts.clear()


def nesting() -> int:
    """In how many blocks this thread is."""
    return _thread.nesting


def set_nesting(depth: int) -> None:
    """Say in how many blocks this thread is."""
    _thread.nesting = depth


def autocast_increment_nesting() -> int:
    """Say that a block begins; how deep it is."""
    _thread.nesting += 1
    return _thread.nesting


def autocast_decrement_nesting() -> int:
    """Say that a block ends; how deep the one around it is."""
    _thread.nesting -= 1
    return _thread.nesting


def eligible(tensor: Tensor) -> bool:
    """Whether autocast touches a tensor: real floating but float64, and of a kind that it is on for."""
    dtype = tensor.dtype
    return (
        dtype.is_floating_point and dtype is not _C.float64 and _thread.enabled.get(tensor.device.type, False)
    )


def cast(tensor: Tensor, dtype: Any) -> Tensor:
    if tensor.dtype is dtype:
        return tensor
    # A parameter is used many times in a step; its cast is a node of the graph like any, where one is recorded.
    keep = (
        _thread.caching and _thread.nesting > 0 and tensor.requires_grad and tensor.is_leaf
        and dtype is not _C.float32
    )  # fmt: skip
    if not keep:
        return tensor.to(dtype)
    key = id(tensor), dtype, _C.is_grad_enabled()
    found = _thread.casts.get(key)
    if found is None or found[1] != tensor._version:
        found = _thread.casts[key] = tensor, tensor._version, tensor.to(dtype)
    return found[2]
