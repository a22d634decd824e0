"""Settings of products and convolutions: ``taeda.backends.cuda.matmul`` and ``taeda.backends.cudnn``."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from taeda_tensor_cuda import _library

__all__ = [
    "cudnn_is_available",
    "cudnn_setting",
    "cudnn_version",
    "cufft_plan_cache",
    "get_sync_debug_mode",
    "library_settings",
    "matmul_settings",
    "set_sync_debug_mode",
]

# --- waits of the host ---

_MODES = ("default", "warn", "error")
_sync_mode = 0


@ctypes.CFUNCTYPE(ctypes.c_int)
def _tell_of_wait() -> int:
    """Warns; where warnings are errors the wait is one."""
    import warnings

    try:
        warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=2)
    except UserWarning:
        return 1
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What happens where the host waits for a copy from or to a device: `item`, `nonzero`, copies that block.

    `synchronize`, of devices, streams and events, is what it says and not told.

    Args:
        debug_mode: "default" (0): nothing; "warn" (1): a UserWarning; "error" (2): a RuntimeError.

    Raises:
        RuntimeError: There is no such mode, or no CUDA device.

    Example:
        >>> taeda.cuda.set_sync_debug_mode("warn")
    """
    global _sync_mode
    known = debug_mode in _MODES if isinstance(debug_mode, str) else debug_mode in range(len(_MODES))
    if not known:
        raise RuntimeError(
            f"set_sync_debug_mode: invalid value of debug_mode, found {debug_mode!r}, expected one of "
            "`default`, `warn`, `error`"
        )
    _library.start()
    _sync_mode = _MODES.index(debug_mode) if isinstance(debug_mode, str) else int(debug_mode)
    _library.library().taeda_cuda_tell_of_waits(_sync_mode, _tell_of_wait)


def get_sync_debug_mode() -> int:
    """The mode that was set, by its number; 0 at first."""
    return _sync_mode


class _Matmul(SimpleNamespace):
    """Precision of matrix products; what is not named here is kept, and nothing reads it."""

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32's 10 bits; False at first."""
        return bool(_library.library().taeda_cuda_allow_tf32(-1))

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        if not isinstance(allowed, bool):
            raise TypeError(f"allow_tf32: expected a bool, found {type(allowed).__name__}")
        _library.library().taeda_cuda_allow_tf32(int(allowed))

    @property
    def fp32_precision(self) -> str:
        """The same by a name: "tf32", or "ieee" for all bits."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        if precision not in ("ieee", "tf32", "none"):
            raise ValueError(f"fp32_precision: expected 'ieee', 'tf32' or 'none', found {precision!r}")
        self.allow_tf32 = precision == "tf32"


matmul_settings = _Matmul(
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
)


class _PlansOfDevice:
    """Plans of cuFFT's that a device keeps for transforms of the same shape."""

    def __init__(self, device: int | None) -> None:
        self._device = device

    def _settle(self, most: int = -1, clear: bool = False) -> tuple[int, int]:
        _library.start()
        from taeda_registry.slots import tensor

        device = tensor.get_device_module("cuda").current_device() if self._device is None else self._device
        numbers = (ctypes.c_int64 * 2)()
        _library.call(None, "transforms", device, most, int(clear), ctypes.byref(numbers))
        return numbers[0], numbers[1]

    @property
    def size(self) -> int:
        """How many plans are kept."""
        return self._settle()[1]

    @property
    def max_size(self) -> int:
        """How many may be; of more the ones go that were not used for the longest. 4096 at first; 0 keeps none."""
        return self._settle()[0]

    @max_size.setter
    def max_size(self, most: int) -> None:
        if not isinstance(most, int) or isinstance(most, bool):
            raise TypeError(f"cufft_plan_cache.max_size: expected an int, found {type(most).__name__}")
        if most < 0:
            raise ValueError(f"cufft_plan_cache.max_size: expected a number of plans from 0 on, found {most}")
        self._settle(most)

    def clear(self) -> None:
        """Let all of them go; those that recorded graphs run stay."""
        self._settle(clear=True)


class _Plans(_PlansOfDevice):
    """Those of the current device; ``cufft_plan_cache[1]`` has those of another one."""

    def __getitem__(self, device: Any) -> _PlansOfDevice:
        index = getattr(device, "index", device)
        if isinstance(device, str):
            index = int(device.partition(":")[2] or 0)
        if index is None:
            return _PlansOfDevice(None)
        from taeda_registry.slots import tensor

        count = tensor.get_device_module("cuda").device_count()
        if not 0 <= index < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected a device from 0 to {count - 1} ({count} of them), found {device!r}"
            )
        return _PlansOfDevice(index)


cufft_plan_cache = _Plans(None)


def cudnn_setting(name: str, value: Any) -> None:
    """Make a setting of ``taeda.backends.cudnn``; those that cuDNN's convolutions do not follow change nothing.

    Args:
        name: "enabled", "allow_tf32" (of float32), "benchmark" (several ways are tried, the fastest is kept) or
            "deterministic" (of those tried, ones that give the same bits each time; what is not tried always does).
        value: A bool.

    Raises:
        TypeError: ``value`` of one of these is no bool.
    """
    setting = _library.library().taeda_cuda_cudnn_setting
    if setting(name.encode(), -1) < 0:
        return
    if not isinstance(value, bool):
        raise TypeError(f"backends.cudnn.{name}: expected a bool, found {type(value).__name__}")
    setting(name.encode(), int(value))


def _found() -> dict[str, Any]:
    try:
        found: dict[str, Any] = _library.report_object(None, 0, "libraries")["cudnn"]
    except RuntimeError:  # no device is in use
        return {"found": False}
    return found


def cudnn_is_available() -> bool:
    """Whether the backend is in use and has found the library."""
    return bool(_found()["found"])


def cudnn_version() -> int | None:
    """The library's version, 91501 for 9.15.1; None where there is none."""
    return _found().get("version")


#: What ``taeda.backends.cudnn`` tells and asks.
library_settings = {"cudnn": (cudnn_setting, {"is_available": cudnn_is_available, "version": cudnn_version})}
