"""What the caching allocators of the devices count; names and meanings are those of ``torch.cuda``.

Before a device is in use they count nothing: statistics are empty, numbers 0.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Iterable
from typing import Any

from taeda_registry import files
from taeda_tensor_cuda import _library

__all__ = [
    "_dump_snapshot",
    "_record_memory_history",
    "_snapshot",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "pinned_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

_PINNED, _OUT_OF_MEMORY = -1, 2
#: What other libraries have been given, with the device.
_given: dict[int, int] = {}


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counts of a device's allocator, such as ``"allocated_bytes.all.peak"``.

    Args:
        device: Device, its name or its index; None is the current one.

    Returns: For each of allocation, segment, active, allocated_bytes, reserved_bytes, active_bytes and
        requested_bytes, for "all", "small_pool" and "large_pool": current, peak, allocated and freed (totals).
        Of inactive_split and inactive_split_bytes, what is free beside blocks that are used, current alone; of
        oversize_allocations and oversize_segments, which there are none of, the four counts. Beside them
        num_alloc_retries, num_ooms, num_device_alloc, num_device_free (calls of the driver), num_events (recorded
        for blocks that several streams used) and max_split_size, -1 as there is no limit. Empty before a device
        is in use.

    Raises:
        ValueError: There is no such device.

    Example:
        >>> x = taeda.ones(2, device="cuda")
        >>> taeda.cuda.memory_stats()["allocated_bytes.all.peak"] >= 8
        True
    """
    return _flat(memory_stats_as_nested_dict(device))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The counts of `memory_stats`, by the parts of their names."""
    found = _counts(device)
    return {**found, **_split(device), **_no_oversize(), "max_split_size": -1} if found else found


def _counts(device: Any) -> dict[str, Any]:
    """What the allocator itself keeps."""
    if not _library.in_use():
        return {}
    found: dict[str, Any] = _library.report_object(None, _index(device), "statistics")
    return found


def _no_oversize() -> dict[str, Any]:
    """Counts of what is never split: there is none, as any size may be."""
    row = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
    return {"oversize_allocations": row, "oversize_segments": dict(row)}


def _split(device: Any) -> dict[str, Any]:
    """How many free blocks share a segment with used ones, and their bytes, by pools."""
    blocks = dict.fromkeys(("all", "small_pool", "large_pool"), 0)
    held = dict(blocks)
    for segment in memory_snapshot(device):
        if len(segment["blocks"]) < 2:
            continue
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        for pool in ("all", f"{segment['segment_type']}_pool"):
            blocks[pool] += len(free)
            held[pool] += sum(free)
    named = {"inactive_split": blocks, "inactive_split_bytes": held}
    return {name: {pool: {"current": n} for pool, n in found.items()} for name, found in named.items()}


def pinned_memory_stats() -> dict[str, int]:
    """The same counts of pinned host memory."""
    return _flat(_library.report_object(None, _PINNED, "statistics")) if _library.in_use() else {}


host_memory_stats = pinned_memory_stats


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold now, rounded as the allocator does."""
    return _flat(_counts(device)).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most of these since the start or `reset_peak_memory_stats`."""
    return _flat(_counts(device)).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds of the device now, used or kept."""
    return _flat(_counts(device)).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most of these since the start or `reset_peak_memory_stats`."""
    return _flat(_counts(device)).get("reserved_bytes.all.peak", 0)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on the device, for all processes, and bytes in all.

    Raises:
        RuntimeError: There is no CUDA device.
    """
    _library.start()
    free, total = ctypes.c_uint64(), ctypes.c_uint64()
    _library.call(None, "room", _index(device), ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start from what is held now."""
    if _library.in_use():
        _library.call(None, "reset", _index(device), b"peaks")


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Totals start from 0."""
    if _library.in_use():
        _library.call(None, "reset", _index(device), b"totals")


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """The allocator takes at most this part of the device's memory.

    Raises:
        RuntimeError: There is no CUDA device.
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
    _library.start()
    _library.call(None, "set_fraction", _index(device), fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part that was set; 1 at first."""
    if not _library.in_use():
        return 1.0
    return _library.number(None, "get_fraction", ctypes.c_double, _index(device))


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The allocator's segments, each with its blocks in the order of their addresses.

    Returns: For each segment address, total_size, stream, segment_type ("small" or "large") and blocks: address, size,
        requested_size and state ("active_allocated", "active_pending_free" while other streams use it, "inactive", or
        "lost" where the driver failed while it was given back).
    """
    if not _library.in_use():
        return []
    found: list[dict[str, Any]] = _library.report_object(None, _index(device), "snapshot")
    return found


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    **_: Any,
) -> None:
    """Note the line of the program that asks for each block, for snapshots and errors; None ends that.

    A note costs about a microsecond for each tensor that is made.

    Args:
        enabled: "all": what allocators do is kept too, in its order; "state": lines alone; None for no notes.
        context, stacks: Accepted, and change nothing: a note is one line of Python.
        max_entries: How many of the last things that each device's allocator did are kept.
        device: Accepted, and changes nothing: notes are of all devices.
        clear_history: Whether what was kept before is forgotten.

    Raises:
        RuntimeError: There is no CUDA device.
        ValueError: There is no such way, or `max_entries` is negative.
    """
    if enabled not in (None, "all", "state"):
        raise ValueError(
            f"_record_memory_history: argument 'enabled' must be None, 'state' or 'all', found {enabled!r}"
        )
    if max_entries < 0:
        raise ValueError(
            f"_record_memory_history: argument 'max_entries' must not be negative, found {max_entries}"
        )
    if enabled is None and not _library.in_use():
        return
    _library.start()
    _library.call(None, "note_sites", int(enabled is not None))
    for index in _devices(None):
        if clear_history:
            _library.call(None, "keep_trace", index, 0)
        _library.call(None, "keep_trace", index, max_entries if enabled == "all" else 0)


def _devices(device: Any) -> Iterable[int]:
    """The number of one device, or those of all."""
    from taeda_registry.slots import tensor

    return range(tensor.get_device_module("cuda").device_count()) if device is None else (_index(device),)


def _snapshot(device: Any = None) -> dict[str, Any]:
    """The segments of all devices, or of one, and what their allocators did since it was asked for.

    Returns: `segments`, as `memory_snapshot` has them, and `device_traces`, for each device a list of what happened,
        the oldest first: `action` ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
        "segment_map", "segment_unmap", "oom"), `addr`, `size`, `stream` and `time_us`. Blocks, and what happened to
        them, have the `frames` that were noted: file, line and function.
    """
    segments: list[dict[str, Any]] = []
    traces: list[list[dict[str, Any]]] = []
    if _library.in_use():
        for index in _devices(device):
            segments += [{"device": index, **segment} for segment in memory_snapshot(index)]
            traces.append(_library.report_object(None, index, "trace"))
    frames = functools.cache(_frames)
    for noted in itertools.chain(*(segment["blocks"] for segment in segments), *traces):
        noted["frames"] = frames(noted.pop("site"))
    return {"segments": segments, "device_traces": traces}


def _frames(site: int) -> list[dict[str, Any]]:
    if not site:
        return []
    _library.call(None, "site_text", site)
    place, _, name = _library.text().partition(", in ")
    file, _, line = place.rpartition(":")
    return [{"filename": file, "line": int(line) if line.isdigit() else 0, "name": name}]


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write `_snapshot()` to a file, pickled."""
    import pickle

    files.write(filename, [pickle.dumps(_snapshot())])


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Memory from the allocator for other libraries, by its address.

    Args:
        size: In bytes.
        device: None is the current one.
        stream: Stream or its handle, for whose work it is; None is the current one.

    Raises:
        RuntimeError: There is no CUDA device.
        MemoryError: There is not enough memory.
    """
    from taeda_registry.slots import tensor

    _library.start()
    index = _index(device)
    if stream is None:
        stream = tensor.current_stream(f"cuda:{index}")
    handle = stream if isinstance(stream, int) else stream.stream_id
    try:
        address: int = _library.number(None, "allocate", ctypes.c_uint64, index, size, handle or None)
    except _library.DriverError as error:
        raise (MemoryError if error.status == _OUT_OF_MEMORY else RuntimeError)(str(error)) from None
    _given[address] = index
    return address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` gave.

    Raises:
        ValueError: It is no such address.
    """
    if mem_ptr not in _given:
        raise ValueError(f"caching_allocator_delete: nothing was given at the address {mem_ptr:#x}")
    _library.call(None, "release", _given.pop(mem_ptr), mem_ptr)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the counts for people; `abbreviated` leaves the two pools out."""
    counts = _counts(device)
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
            if isinstance(row, dict):
                flat.update({f"{name}.{pool}.{part}": count for part, count in row.items()})
            else:
                flat[f"{name}.{pool}"] = row
    return flat


def _index(device: Any) -> int:
    from taeda_registry.slots import tensor

    kind = tensor.get_device_module("cuda")
    if device is None:
        return kind.current_device()
    if isinstance(device, int):
        index = device
    else:
        found = tensor.device(device)
        if found.type != "cuda":
            raise ValueError(f"expected a cuda device, found '{found}'")
        index = kind.current_device() if found.index is None else found.index
    if not 0 <= index < kind.device_count():
        raise ValueError(f"expected the index of a cuda device, of {kind.device_count()}, found {index}")
    return index
