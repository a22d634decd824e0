"""Simulated machines: a driver without hardware, with the allocators of the backend on it. For tests.

Time is virtual, in nanoseconds; it passes only while something waits, or by `Machine.advance`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from taeda_tensor_cuda import _library
from taeda_tensor_cuda._library import DriverError

__all__ = ["OUT_OF_MEMORY", "PINNED", "DriverError", "Machine"]

#: The device index that stands for pinned host memory.
PINNED = -1
#: The driver's status when memory is used up.
OUT_OF_MEMORY = 2
_NOT_READY = 600


def _product(members: Sequence[int], factors: Sequence[float]) -> tuple[Any, Any]:
    return (ctypes.c_int64 * 24)(*members), (ctypes.c_double * 2)(*factors)


class Machine:
    """Devices of equal size, an allocator for each, and one for pinned memory.

    Args:
        nbytes: Memory of each device.
        devices: How many there are.

    Example:
        >>> machine = Machine(1 << 30)
        >>> block = machine.allocate(1000, machine.stream())
    """

    def __init__(self, nbytes: int, devices: int = 1) -> None:
        self._handle: Any = _library.library().taeda_cuda_simulate(devices, nbytes)
        if not self._handle:
            raise MemoryError(_library.text())

    def close(self) -> None:
        """Ends the machine; nothing of it may be used afterwards."""
        handle, self._handle = self._handle, None
        if handle:
            _library.library().taeda_cuda_end(handle)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, *arguments: Any) -> None:
        _library.call(self._handle, name, *arguments)

    def _number(self, name: str, kind: Any, *arguments: Any) -> Any:
        return _library.number(self._handle, name, kind, *arguments)

    def allocate(self, nbytes: int, stream: int | None = None, device: int = 0) -> int:
        """Address of a block for work on `stream`."""
        return self._number("allocate", ctypes.c_uint64, device, nbytes, stream)

    def release(self, address: int, device: int = 0) -> None:
        """Gives a block back."""
        self._call("release", device, address)

    def uses(self, address: int, stream: int | None, device: int = 0) -> None:
        """Work in `stream` uses the block around an address."""
        self._call("uses", device, address, stream)

    def launched(self, address: int, stream: int | None, device: int = 0) -> None:
        """The same as launches and copies say it: nothing where a device has had one stream only."""
        self._call("launched", device, address, stream)

    def empty_cache(self, device: int = 0) -> None:
        """Gives whole free segments back to the driver."""
        self._call("empty_cache", device)

    def set_fraction(self, fraction: float, device: int = 0) -> None:
        """Limits what the allocator takes."""
        self._call("set_fraction", device, fraction)

    def set_expandable(self, expandable: bool, device: int = 0) -> None:
        """Whether new pools have one segment that expands."""
        self._call("set_expandable", device, int(expandable))

    def reset(self, what: str, device: int = 0) -> None:
        """Lets "peaks" or "totals" start anew."""
        self._call("reset", device, what.encode())

    def statistics(self, device: int = 0) -> dict[str, Any]:
        """Counts of the allocator, nested by name, pool and part."""
        return _library.report_object(self._handle, device, "statistics")

    def snapshot(self, device: int = 0) -> list[dict[str, Any]]:
        """Segments with their blocks."""
        return _library.report_object(self._handle, device, "snapshot")

    def inconsistency(self, device: int = 0) -> str:
        """What is wrong within the allocator; empty where nothing is."""
        return _library.report(self._handle, device, "inconsistency")

    def stream(self, device: int = 0, priority: int = 0) -> int:
        """A new stream, or one that was ended."""
        return self._number("create_stream", ctypes.c_void_p, device, priority)

    def end_stream(self, stream: int, device: int = 0) -> None:
        """Nobody will put work there."""
        self._call("end_stream", device, stream)

    def synchronize(self, device: int = 0) -> None:
        """Waits for all work of a device."""
        self._call("synchronize", device)

    def synchronize_stream(self, stream: int | None, device: int = 0) -> None:
        """Waits for the work of one stream."""
        self._call("synchronize_stream", device, stream)

    def is_idle(self, stream: int | None, device: int = 0) -> bool:
        """Whether a stream has nothing to do."""
        return self._answer("query_stream", device, stream)

    def event(self, device: int = 0, timing: bool = False) -> int:
        """A new event."""
        return self._number("create_event", ctypes.c_void_p, device, int(timing))

    def destroy_event(self, event: int, device: int = 0) -> None:
        """Ends an event."""
        self._call("destroy_event", device, event)

    def record(self, event: int, stream: int | None, device: int = 0) -> None:
        """Puts the event behind what is in a stream."""
        self._call("record_event", device, event, stream)

    def wait(self, stream: int | None, event: int, device: int = 0) -> None:
        """What is put into the stream from now on comes after the event."""
        self._call("wait_event", device, stream, event)

    def is_reached(self, event: int, device: int = 0) -> bool:
        """Whether the event's stream has come to it."""
        return self._answer("query_event", device, event)

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events."""
        return self._number("elapsed", ctypes.c_double, start, end)

    def copy_in(self, to: int, data: Any, nbytes: int, stream: int | None, device: int = 0) -> None:
        """Copies from a buffer of the host, an address or a ctypes array, when the stream comes to it."""
        self._call("copy_in", device, to, data, nbytes, stream)

    def copy_out(self, data: Any, source: int, nbytes: int, stream: int | None, device: int = 0) -> None:
        """Copies to a buffer of the host, likewise."""
        self._call("copy_out", device, data, source, nbytes, stream)

    def work(self, stream: int | None, nanoseconds: int, device: int = 0) -> int:
        """Puts work of a length into a stream; gives the time of its end."""
        return self._number("work", ctypes.c_int64, device, stream, nanoseconds)

    def multiply(
        self, product: Sequence[int], factors: Sequence[float], stream: int | None, device: int = 0
    ) -> None:
        """Puts a product of matrices into a stream: the members of BlasProduct in their order, and alpha and beta."""
        self._call("multiply", device, *_product(product, factors), stream)

    def can_finish(self, product: Sequence[int], device: int = 0) -> bool:
        """Whether the library has the product's epilogue."""
        return bool(self._number("can_finish", ctypes.c_int, device, *_product(product, (1.0, 0.0))))

    def new_pool(self) -> int:
        """A number for memory that graphs have for themselves."""
        return self._number("new_pool", ctypes.c_uint64)

    def graph(self, device: int = 0) -> int:
        """A graph with nothing recorded."""
        return self._number("graph_make", ctypes.c_void_p, device)

    def end_graph(self, graph: int) -> None:
        """Does without a graph; a recording ends, too."""
        self._call("graph_end", graph)

    def begin_capture(self, graph: int, stream: int | None, pool: int, mode: int = 0) -> None:
        """Records what is put into a stream; modes are 0 global, 1 thread-local, 2 relaxed."""
        self._call("graph_begin_capture", graph, stream, pool, mode)

    def end_capture(self, graph: int) -> None:
        """Ends the recording and makes it ready to run."""
        self._call("graph_end_capture", graph)
        self._call("graph_instantiate", graph)

    def capture_of(self, stream: int | None, device: int = 0) -> int:
        """The number of the recording that a stream belongs to; 0: none."""
        return self._number("capture_of", ctypes.c_uint64, device, stream)

    def replay(self, graph: int, stream: int | None) -> None:
        """Puts the recorded work into a stream."""
        self._call("graph_replay", graph, stream)

    def reset_graph(self, graph: int) -> None:
        """Does without what was recorded."""
        self._call("graph_reset", graph)

    def now(self) -> int:
        """The time."""
        return self._number("now", ctypes.c_int64)

    def advance(self, nanoseconds: int) -> None:
        """Lets time pass."""
        self._call("advance", nanoseconds)

    def fail(self, kind: str, nth: int = 1) -> None:
        """The nth call of a kind fails: allocate, pinned, copy, event, synchronize, product, graph; or the nth kernel
        that is queued leaves the device unusable when it runs."""
        self._call("fail", kind.encode(), nth)

    def hold(self, nbytes: int, device: int = 0) -> None:
        """Other processes take so much of a device."""
        self._call("hold", device, nbytes)

    def taken(self, device: int = 0) -> int:
        """Bytes that the driver has given this process."""
        return self._number("taken", ctypes.c_uint64, device)

    def traffic(self, device: int = 0) -> tuple[int, int]:
        """How often the driver was asked for memory, and given some back."""
        taken, given = ctypes.c_uint64(), ctypes.c_uint64()
        self._call("traffic", device, ctypes.byref(taken), ctypes.byref(given))
        return taken.value, given.value

    def _answer(self, name: str, *arguments: Any) -> bool:
        status = _library.status_of(self._handle, name, *arguments)
        if status not in (0, _NOT_READY):
            raise DriverError(status, f"{name}: {_library.text()}")
        return status == 0
