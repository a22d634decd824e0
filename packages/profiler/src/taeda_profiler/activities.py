"""Activities: what devices did while a program was recorded, as columns of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

# Kinds, as the C ABI numbers them.
KERNEL, COPY, FILL, WAIT = range(4)

_COLUMNS = {
    "begin": np.int64,
    "length": np.int64,
    "name": np.int32,
    "kind": np.uint8,
    "device": np.int32,
    "stream": np.uint64,
    "origin": np.uint64,
    "bytes": np.int64,
}
_WORKS = {"origin": np.uint64, "at": np.int64, "event": np.int32}


class Lane(NamedTuple):
    """One stream of one device; stream 0 is the device's default one."""

    device: str
    backend: int
    index: int
    stream: int

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.device} stream {self.stream}"


class Activities:
    """What devices did, in the order of its beginning.

    Attributes:
        begin, duration: In nanoseconds from the beginning of the recording.
        name, kind, bytes: Number of the name, one of the kinds above, and what was copied.
        lane: The place of its stream in ``lanes``.
        event: The innermost event that handed the work over, -1 where that is not known.
        at, thread: When and on which thread that was; -1 where that is not known.
        lanes: The streams.
        dropped: Activities for which there was no room.
        failed: What a device said that could not tell what it did.
    """

    def __init__(self, raw: dict[str, Any], works: dict[str, Numbers]) -> None:
        found = {name: np.frombuffer(raw["activities"][name], dtype) for name, dtype in _COLUMNS.items()}
        order = np.argsort(found["begin"], kind="stable")
        columns = {name: column[order] for name, column in found.items()}
        self.begin, self.duration = columns["begin"], columns["length"]
        self.name, self.kind, self.bytes = columns["name"], columns["kind"], columns["bytes"]
        self.dropped: int = raw["activities_dropped"]
        self.failed: str = raw["devices_failed"]
        self._place(columns["origin"], works)
        self._divide(columns["device"], columns["stream"], raw["backends"])

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def end(self) -> int:
        """When the last one ended."""
        return int((self.begin + self.duration).max()) if len(self) else 0

    def _place(self, origin: Numbers, works: dict[str, Numbers]) -> None:
        """Where each one comes from."""
        self.event, self.thread = (np.full(len(self), -1, np.int32) for _ in range(2))
        self.at = np.full(len(self), -1, np.int64)
        if not len(works["origin"]) or not len(self):
            return
        order = np.argsort(works["origin"], kind="stable")
        numbers = works["origin"][order]
        place = np.minimum(np.searchsorted(numbers, origin), len(numbers) - 1)
        known = (numbers[place] == origin) & (origin != 0)
        for name in ("event", "thread", "at"):
            getattr(self, name)[known] = works[name][order][place[known]]

    def _divide(self, device: Numbers, stream: Numbers, backends: list[str]) -> None:
        """Streams get small numbers, those of a device in the order of their first use."""
        self.lanes: list[Lane] = []
        handles, of_handle = np.unique(stream, return_inverse=True)
        keys = device.astype(np.int64) * max(len(handles), 1) + of_handle
        found, first, lane = np.unique(keys, return_index=True, return_inverse=True)
        used: dict[int, int] = {}
        numbers = np.zeros(len(found), np.int32)
        for place in np.argsort(first).tolist():
            where, own = int(device[first[place]]), int(stream[first[place]])
            if own:
                used[where] = used.get(where, 0) + 1
            backend, index = where >> 16, where & 0xFFFF
            name = backends[backend] if backend < len(backends) else f"device{backend}"
            numbers[place] = len(self.lanes)
            self.lanes.append(Lane(f"{name}:{index}", backend, index, used[where] if own else 0))
        self.lane = numbers[lane]

    def self_duration(self, events: int) -> Numbers:
        """Nanoseconds that devices worked for each of so many events itself."""
        known = self.event >= 0
        weights = self.duration[known].astype(np.float64)
        return np.bincount(self.event[known], weights=weights, minlength=events).astype(np.int64)


def joined_works(threads: list[dict[str, Any]], firsts: list[int]) -> dict[str, Numbers]:
    """What threads have handed to devices; `firsts` are the numbers of their first events."""
    parts: dict[str, list[Numbers]] = {name: [] for name in (*_WORKS, "thread")}
    for thread, first in zip(threads, firsts, strict=True):
        columns = {name: np.frombuffer(thread["works"][name], dtype) for name, dtype in _WORKS.items()}
        event = columns["event"]
        columns["event"] = np.where(event >= 0, event + np.int32(first), event)
        columns["thread"] = np.full(len(event), thread["number"], np.int32)
        for name, column in columns.items():
            parts[name].append(column)
    types = {**_WORKS, "thread": np.int32}
    return {name: np.concatenate([np.zeros(0, types[name]), *columns]) for name, columns in parts.items()}
