"""Communicators of NVIDIA's NCCL: what devices of several processes do together.

``taeda.distributed`` works with them where it is asked for "nccl". The library is opened at run time, where it lies in
one of the places that `taeda_tensor_cuda.libraries` tells of.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
from collections.abc import Iterator, Sequence
from typing import Any

from taeda_tensor_cuda import _library

__all__ = [
    "Communicator",
    "NcclError",
    "Together",
    "is_available",
    "unavailable_reason",
    "unique_id",
    "version",
]

_ID_BYTES = 128
#: The driver's status of what is not done yet.
_NOT_READY = 600
#: The C ABI's numbers of the dtypes that the library has; numbers of bool are bytes.
_CODES = {
    "bool": 0, "int8": 1, "int32": 3, "int64": 4, "uint8": 5, "uint32": 7, "uint64": 8, "float16": 9, "bfloat16": 10,
    "float32": 11, "float64": 12,
}  # fmt: skip


class NcclError(RuntimeError):
    """The library says that something went wrong, or others did not come in time."""


class Together(enum.IntEnum):
    """What a communicator can begin."""

    ALL_REDUCE = 0
    REDUCE = 1
    BROADCAST = 2
    ALL_GATHER = 3
    REDUCE_SCATTER = 4
    SEND = 5
    RECEIVE = 6


class Reduction(enum.IntEnum):
    """How numbers become one, as the library counts."""

    SUM = 0
    PRODUCT = 1
    MAX = 2
    MIN = 3
    AVG = 4


def _call(what: str, name: str, *arguments: Any) -> None:
    status = _library.status_of(None, name, *arguments)
    if status == _NOT_READY:
        raise NcclError(f"{what}: the other processes did not come in time")
    if status != 0:
        raise NcclError(f"{what}: {_library.text()}")


def unavailable_reason() -> str:
    """Why there is no NCCL for devices in use; empty where there is one.

    Example:
        >>> isinstance(taeda.cuda.nccl.unavailable_reason(), str)
        True
    """
    try:
        version()
    except RuntimeError as error:
        return str(error)
    return ""


def version() -> tuple[int, int, int]:
    """The library's version.

    Raises:
        RuntimeError: It is not there, or no device is.
    """
    place = ctypes.c_int()
    try:
        _library.start()
        _call("nccl.version", "nccl_version", ctypes.byref(place))
    except RuntimeError as error:
        raise RuntimeError(f"taeda.cuda.nccl: the library is not there: {error}") from error
    number = place.value
    return (number // 10000, number // 100 % 100, number % 100)


def is_available(tensors: Sequence[Any] = ()) -> bool:
    """Whether the library is there, and can work with such tensors: dense ones, each of another CUDA device."""
    devices = [getattr(each, "device", None) for each in tensors]
    fit = all(device is not None and device.type == "cuda" for device in devices)
    return fit and len(set(devices)) == len(devices) and not unavailable_reason()


def unique_id() -> bytes:
    """What one process makes and all others join a communicator by.

    Raises:
        NcclError: The library is not there, or fails.
    """
    place = ctypes.create_string_buffer(_ID_BYTES)
    _call("nccl.unique_id", "nccl_unique_id", place)
    return place.raw


class Communicator:
    """A device's membership among devices of several processes.

    Every member begins the same work in the same order. What is begun runs in a stream of the device; the host only
    waits until it is on its way.

    Args:
        device: Index of the device.
        identity: What `unique_id` gave to one of the processes.
        rank: Place of the device, from 0.
        size: How many devices there are.
        seconds: How long to wait for the others, now and whenever something begins.

    Raises:
        NcclError: Others do not come in time, or the library fails.
    """

    def __init__(self, device: int, identity: bytes, rank: int, size: int, seconds: float) -> None:
        if len(identity) != _ID_BYTES:
            raise ValueError(
                f"Communicator: argument 'identity' has {len(identity)} bytes, expected {_ID_BYTES}"
            )
        self.device, self.rank, self.size, self.seconds = device, rank, size, seconds
        self._handle: Any = None
        place = ctypes.c_void_p()
        _call("nccl", "nccl_join", device, identity, rank, size, seconds, ctypes.byref(place))
        self._handle = place

    def begin(
        self,
        what: Together,
        stream: int,
        source: Any = None,
        target: Any = None,
        count: int | None = None,
        reduction: int = Reduction.SUM,
        peer: int = 0,
    ) -> None:
        """Put work behind what is in a stream. Tensors are contiguous, of the device, and kept by the caller.

        Args:
            what: The work.
            stream: Handle of the stream.
            source, target: What is read and written, as far as the work does so.
            count: Elements of one member; by default those of `source`, or of `target` where there is none.
            reduction: How numbers become one.
            peer: The root, or the other member.

        Raises:
            NcclError: The communicator was aborted, or the library fails. TypeError: It has no such dtype.
        """
        one = target if source is None else source
        name = str(one.dtype).rpartition(".")[2]
        if name not in _CODES:
            raise TypeError(f"NCCL has no type for {one.dtype}")
        addresses = (0 if each is None else each.data_ptr() for each in (source, target))
        elements = one.numel() if count is None else count
        _call(
            "nccl", "nccl_begin", self.device, self._alive(), int(what), *addresses, elements, _CODES[name],
            int(reduction), peer, stream,
        )  # fmt: skip

    def settle(self) -> None:
        """Wait until what was begun is on its way.

        Raises:
            NcclError: Others do not come in time, a member has failed, or the library fails.
        """
        _call("nccl", "nccl_settle", self.device, self._alive(), self.seconds)

    def failure(self) -> str:
        """What went wrong in work that was begun, with this member or another; empty as long as nothing did."""
        if self._handle is None:
            return "the communicator was aborted"
        status = _library.status_of(None, "nccl_settle", self.device, self._handle, 0.0)
        return "" if status in (0, _NOT_READY) else _library.text()

    def leave(self) -> None:
        """End the membership when its work is done; a second time does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _call("nccl", "nccl_leave", self.device, handle, self.seconds)

    def abort(self) -> None:
        """End the membership at once, and its work, whose results are undefined; a second time does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _call("nccl", "nccl_abort", self.device, handle)

    def _alive(self) -> Any:
        if self._handle is None:
            raise NcclError("nccl: the communicator was aborted, or has been left")
        return self._handle


@contextlib.contextmanager
def group(members: Sequence[Communicator]) -> Iterator[None]:
    """A context in which work of some communicators is begun together: sends and receives do not wait for each other.

    Raises:
        NcclError: As `Communicator.settle`.
    """
    device = members[0].device
    _call("nccl", "nccl_begin_group", device)
    try:
        yield
    finally:
        _call("nccl", "nccl_end_group", device)
    for member in members:
        member.settle()


def fail_later(device: int, text: str) -> None:
    """Let the next wait of the host for a device's work end with an error of this text."""
    _library.call(None, "fail_later", device, text.encode())
