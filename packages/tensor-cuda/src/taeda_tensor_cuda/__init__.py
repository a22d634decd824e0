"""The CUDA backend: a device plug-in that taeda finds by the name ``cuda``.

import taeda
x = taeda.ones(3).to("cuda")      # where there is a driver and a device
taeda.cuda.is_available()         # False elsewhere; unavailable_reason() says why
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from taeda_tensor_cuda import arrays
from taeda_tensor_cuda._library import report_object
from taeda_tensor_cuda.memory import (
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    pinned_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)

__all__ = [
    "get_per_process_memory_fraction",
    "has_device_code",
    "libraries",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "pinned_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "unavailable_reason",
]

#: Where taeda finds the plug-in.
__taeda_plugin__ = str(Path(__file__).with_name("libtaeda_cuda.so"))


def has_device_code() -> bool:
    """Whether the library holds kernels for devices; one that was built without nvcc has those of the simulated one."""
    return bool(ctypes.CDLL(__taeda_plugin__).taeda_cuda_has_device_code())


def libraries() -> dict[str, dict[str, Any]]:
    """NVIDIA's libraries that the backend uses where they are found: for each whether it was, and its path or why not.

    They are looked for in the folders of the environment's TAEDA_CUDA_LIBRARIES (apart by colons; "none" does without
    any), in NVIDIA's wheels beside this package, where the system looks, and in CUDA_HOME. Without cuBLAS the
    backend's own kernels multiply matrices.

    Raises:
        RuntimeError: The backend has not been started.

    Example:
        >>> taeda_tensor_cuda.libraries()["cublas"]["found"]
        True
    """
    found: dict[str, dict[str, Any]] = report_object(None, 0, "libraries")
    return found


def unavailable_reason() -> str:
    """Why there is no CUDA device; empty where there is one.

    Example:
        >>> taeda_tensor_cuda.unavailable_reason()
        "there is no CUDA driver: libcuda.so.1: cannot open shared object file ..."
    """
    from taeda_registry.slots import tensor

    if tensor.get_device_module("cuda").is_available():
        return ""
    failure = tensor.backends.failures().get("cuda")
    return "the plug-in was not found" if failure is None else str(failure)


arrays.install()
