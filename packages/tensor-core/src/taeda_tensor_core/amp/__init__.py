"""Mixed precision: operators that gain by fewer bits run in bfloat16 or float16, those that need more in float32.

``autocast`` chooses by operator (`policies`), ``GradScaler`` keeps gradients of float16 from vanishing. A block of
autocast costs nothing outside of it: the layer that casts stands in the operator table from the first block on, and
is met on threads that are in one.
"""

from __future__ import annotations

from typing import Any

from taeda_tensor_core.amp import _state
from taeda_tensor_core.amp._state import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from taeda_tensor_core.amp.autocast_mode import autocast, autocast_decorator, custom_bwd, custom_fwd
from taeda_tensor_core.amp.grad_scaler import GradScaler, OptState

__all__ = [
    "GradScaler", "autocast", "autocast_decorator", "autocast_decrement_nesting", "autocast_increment_nesting",
    "clear_autocast_cache", "custom_bwd",
    "custom_fwd", "for_device", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
    "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
]  # fmt: skip


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool, /) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> Any:
    """`get_autocast_dtype("cpu")`."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any, /) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """The dtype of autocast on the first reserved kind of device."""
    return get_autocast_dtype(_state.accelerator_kind())


def set_autocast_gpu_dtype(dtype: Any, /) -> None:
    """Set the dtype of autocast on the first reserved kind of device."""
    set_autocast_dtype(_state.accelerator_kind(), dtype)


def for_device(kind: str) -> dict[str, Any]:
    """What a kind of device has as its module `amp`: the same for that kind, deprecated."""
    import functools

    class DeviceAutocast(autocast):
        """`taeda.amp.autocast` for one kind of device."""

        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            super().__init__(kind, dtype, enabled, cache_enabled)

    class DeviceGradScaler(GradScaler):
        """`taeda.amp.GradScaler` for one kind of device."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(kind, *args, **kwargs)

    DeviceAutocast.__name__ = DeviceAutocast.__qualname__ = "autocast"
    DeviceGradScaler.__name__ = DeviceGradScaler.__qualname__ = "GradScaler"
    functions = {
        "custom_fwd": functools.partial(custom_fwd, device_type=kind),
        "custom_bwd": functools.partial(custom_bwd, device_type=kind),
    }
    return {
        "autocast": DeviceAutocast,
        "GradScaler": DeviceGradScaler,
        **functions,
        "autocast_mode": autocast_module(DeviceAutocast, **functions),
        "grad_scaler": autocast_module(DeviceGradScaler, OptState=OptState),
    }


def autocast_module(cls: type, **beside: Any) -> Any:
    """A module of one class and what stands beside it, as older programs import it."""
    from types import ModuleType

    made = ModuleType(cls.__name__)
    vars(made).update({cls.__name__: cls, **beside})
    return made
