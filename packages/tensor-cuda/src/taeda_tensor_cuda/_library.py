"""The library's C functions, and the machine that taeda's own tensors use."""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from typing import Any

#: Statuses of the library itself, beside the driver's.
_THROWN, _NO_MACHINE = -2, -3

_pointer, _int, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
_PARAMETERS: dict[str, list[Any]] = {
    "allocate": [_int, _size, _pointer, ctypes.POINTER(_size)],
    "release": [_int, _size],
    "uses": [_int, _size, _pointer],
    "launched": [_int, _size, _pointer],
    "empty_cache": [_int],
    "set_fraction": [_int, ctypes.c_double],
    "get_fraction": [_int, ctypes.POINTER(ctypes.c_double)],
    "set_expandable": [_int, _int],
    "reset": [_int, ctypes.c_char_p],
    "report": [_int, ctypes.c_char_p],
    "room": [_int, ctypes.POINTER(_size), ctypes.POINTER(_size)],
    "device_of": [_size, ctypes.POINTER(_int)],
    "create_stream": [_int, _int, ctypes.POINTER(_pointer)],
    "end_stream": [_int, _pointer],
    "synchronize_stream": [_int, _pointer],
    "query_stream": [_int, _pointer],
    "synchronize": [_int],
    "create_event": [_int, _int, ctypes.POINTER(_pointer)],
    "destroy_event": [_int, _pointer],
    "record_event": [_int, _pointer, _pointer],
    "wait_event": [_int, _pointer, _pointer],
    "query_event": [_int, _pointer],
    "elapsed": [_pointer, _pointer, ctypes.POINTER(ctypes.c_double)],
    "copy_in": [_int, _size, _pointer, _size, _pointer],
    "copy_out": [_int, _pointer, _size, _size, _pointer],
    "multiply": [_int, _pointer, _pointer, _pointer],
    "can_finish": [_int, _pointer, _pointer, ctypes.POINTER(_int)],
    "transforms": [_int, ctypes.c_int64, _int, ctypes.POINTER(ctypes.c_int64 * 2)],
    "keep_trace": [_int, _size],
    "note_sites": [_int],
    "site_text": [_size],
    "new_pool": [ctypes.POINTER(_size)],
    "capture_of": [_int, _pointer, ctypes.POINTER(_size)],
    "graph_make": [_int, ctypes.POINTER(_pointer)],
    "graph_end": [_pointer],
    "graph_begin_capture": [_pointer, _pointer, _size, _int],
    "graph_end_capture": [_pointer],
    "graph_instantiate": [_pointer],
    "graph_drop_recording": [_pointer],
    "graph_replay": [_pointer, _pointer],
    "graph_reset": [_pointer],
    "graph_draw": [_pointer, ctypes.c_char_p],
    "nccl_version": [ctypes.POINTER(_int)],
    "nccl_unique_id": [_pointer],
    "nccl_join": [_int, ctypes.c_char_p, _int, _int, ctypes.c_double, ctypes.POINTER(_pointer)],
    "nccl_begin_group": [_int],
    "nccl_end_group": [_int],
    "nccl_begin": [_int, _pointer, _int, _size, _size, _size, _int, _int, _int, _pointer],
    "nccl_settle": [_int, _pointer, ctypes.c_double],
    "nccl_leave": [_int, _pointer, ctypes.c_double],
    "nccl_abort": [_int, _pointer],
    "fail_later": [_int, ctypes.c_char_p],
    "work": [_int, _pointer, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)],
    "now": [ctypes.POINTER(ctypes.c_int64)],
    "advance": [ctypes.c_int64],
    "fail": [ctypes.c_char_p, ctypes.c_int64],
    "hold": [_int, _size],
    "taken": [_int, ctypes.POINTER(_size)],
    "traffic": [_int, ctypes.POINTER(_size), ctypes.POINTER(_size)],
}


class DriverError(RuntimeError):
    """A call of the driver failed; `status` is its number."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@functools.cache
def library() -> ctypes.CDLL:
    """The same library that taeda loads as a plug-in."""
    loaded = ctypes.CDLL(str(Path(__file__).with_name("libtaeda_cuda.so")))
    for name, parameters in _PARAMETERS.items():
        function = getattr(loaded, f"taeda_cuda_{name}")
        function.argtypes, function.restype = [_pointer, *parameters], _int
    loaded.taeda_cuda_text.argtypes, loaded.taeda_cuda_text.restype = [], ctypes.c_char_p
    loaded.taeda_cuda_simulate.argtypes, loaded.taeda_cuda_simulate.restype = [_int, _size], _pointer
    loaded.taeda_cuda_end.argtypes, loaded.taeda_cuda_end.restype = [_pointer], None
    return loaded


def in_use() -> bool:
    """Whether the backend has been started, and works."""
    from taeda_registry.slots import tensor

    return tensor.get_device_module("cuda").is_initialized()


def start() -> None:
    """Starts the backend.

    Raises:
        RuntimeError: There is no device; the text says why.
    """
    from taeda_registry.slots import tensor

    tensor.get_device_module("cuda").init()


def text() -> str:
    """What the last call on this thread said."""
    return library().taeda_cuda_text().decode()


def status_of(machine: Any, name: str, *arguments: Any) -> int:
    """Calls a function on a machine, None being the backend's own.

    Raises:
        RuntimeError: The backend has not been started.
        MemoryError: The host's memory is used up.
    """
    status: int = getattr(library(), f"taeda_cuda_{name}")(machine, *arguments)
    if status == _NO_MACHINE:
        raise RuntimeError(f"{name}: no CUDA device is in use; taeda.cuda.init() starts the backend")
    if status == _THROWN:
        raise MemoryError(text())
    return status


def call(machine: Any, name: str, *arguments: Any) -> None:
    """The same, where anything but success is an error.

    Raises:
        DriverError: The driver's status is another one.
    """
    status = status_of(machine, name, *arguments)
    if status != 0:
        raise DriverError(status, f"{name}: {text()}")


def number(machine: Any, name: str, kind: Any, *arguments: Any) -> Any:
    """Calls a function whose last place is for a result, and gives that."""
    place = kind()
    call(machine, name, *arguments, ctypes.byref(place))
    return place.value


def report(machine: Any, device: int, what: str) -> str:
    """A text about the allocator of a device; -1 is pinned memory."""
    call(machine, "report", device, what.encode())
    return text()


def report_object(machine: Any, device: int, what: str) -> Any:
    """The same, where the text is JSON."""
    return json.loads(report(machine, device, what))
