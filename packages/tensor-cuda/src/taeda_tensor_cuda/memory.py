"""What the caching allocators of the devices count; names and meanings are those of ``torch.cuda``."""

from __future__ import annotations

import ctypes
from typing import Any

from taeda_tensor_cuda import _library

__all__ = [
    "get_per_process_memory_fraction",
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
]

_PINNED = -1


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counts of a device's allocator, such as ``"allocated_bytes.all.peak"``.

    Args:
        device: Device, its name or its index; None is the first one.

    Returns: For each of allocation, segment, active, allocated_bytes, reserved_bytes, active_bytes and
        requested_bytes, for "all", "small_pool" and "large_pool": current, peak, allocated and freed (totals).
        Beside them num_alloc_retries, num_ooms, num_device_alloc, num_device_free (calls of the driver) and
        num_events (recorded for blocks that several streams used).

    Raises:
        RuntimeError: No CUDA device is in use yet.
        ValueError: There is no such device.
    """
    return _flat(_library.report_object(None, _index(device), "statistics"))


def pinned_memory_stats() -> dict[str, int]:
    """The same counts of pinned host memory."""
    return _flat(_library.report_object(None, _PINNED, "statistics"))


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold now, rounded as the allocator does."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The most of these since the start or `reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds of the device now, used or kept."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The most of these since the start or `reset_peak_memory_stats`."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on the device, for all processes, and bytes in all."""
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    _library.call(None, "room", _index(device), ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start from what is held now."""
    _library.call(None, "reset", _index(device), b"peaks")


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Totals start from 0."""
    _library.call(None, "reset", _index(device), b"totals")


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """The allocator takes at most this part of the device's memory.

    Raises:
        TypeError: No float.
        ValueError: Not between 0 and 1.
    """
    if not isinstance(fraction, float):
        raise TypeError(
            f"set_per_process_memory_fraction: argument 'fraction' must be float, found {type(fraction).__name__}"
        )
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"set_per_process_memory_fraction: argument 'fraction' must lie between 0 and 1, found {fraction}"
        )
    _library.call(None, "set_fraction", _index(device), fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part that was set; 1 at first."""
    return _library.number(None, "get_fraction", ctypes.c_double, _index(device))


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The allocator's segments, each with its blocks in the order of their addresses.

    Returns: For each segment address, total_size, stream, segment_type ("small" or "large") and blocks: address, size,
        requested_size and state ("active_allocated", "active_pending_free" while other streams use it, "inactive", or
        "lost" where the driver failed while it was given back).
    """
    return _library.report_object(None, _index(device), "snapshot")


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the counts for people; `abbreviated` leaves the two pools out."""
    counts = _library.report_object(None, _index(device), "statistics")
    pools = ("all",) if abbreviated else ("all", "small_pool", "large_pool")
    lines = [f"{'':28}" + "".join(f"{head:>14}" for head in ("current", "peak", "allocated", "freed"))]
    for name, rows in counts.items():
        if isinstance(rows, dict):
            lines += [
                f"{name + '.' + pool:28}" + "".join(f"{value:>14}" for value in rows[pool].values())
                for pool in pools
            ]
    lines += [f"{name:28}{value:>14}" for name, value in counts.items() if not isinstance(value, dict)]
    return "\n".join(lines)


def _flat(found: dict[str, Any]) -> dict[str, int]:
    flat: dict[str, int] = {}
    for name, value in found.items():
        if not isinstance(value, dict):
            flat[name] = value
            continue
        for pool, row in value.items():
            flat.update({f"{name}.{pool}.{part}": count for part, count in row.items()})
    return flat


def _index(device: Any) -> int:
    from taeda_registry.slots import tensor

    kind = tensor.get_device_module("cuda")
    if device is None:
        return 0
    if isinstance(device, int):
        index = device
    else:
        found = tensor.device(device)
        if found.type != "cuda":
            raise ValueError(f"expected a cuda device, found '{found}'")
        index = found.index or 0
    if not 0 <= index < kind.device_count():
        raise ValueError(f"expected the index of a cuda device, of {kind.device_count()}, found {index}")
    return index
