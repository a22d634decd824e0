"""Trace: what one recording holds, as columns of numbers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taeda_profiler.activities import Activities, joined_works

Numbers = NDArray[Any]

_EVENT_COLUMNS = {
    "begin": np.int64,
    "length": np.int64,
    "name": np.int32,
    "kind": np.uint8,
    "failed": np.uint8,
    "sequence": np.uint32,
    "detail": np.int32,
    "parent": np.int32,
    "depth": np.int32,
}
_MEMORY_COLUMNS = {
    "at": np.int64,
    "bytes": np.int64,
    "address": np.uint64,
    "event": np.int32,
    "device": np.int32,
}
OPERATOR = 0
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class ThreadInfo:
    """One recorded thread.

    Attributes:
        number: Its place among the threads of the trace.
        id: The system's number of it.
        name: Python's name of it, if it still ran at the end.
        dropped: Events for which there was no room.
    """

    def __init__(self, number: int, id: int, name: str, dropped: int) -> None:
        self.number, self.id, self.name, self.dropped = number, id, name, dropped


class Trace:
    """Events of all threads, in columns; those of a thread stand together, in the order of their beginning.

    Attributes:
        started: When recording began, in nanoseconds of Python's ``time.perf_counter_ns``; events count from there.
        length: Nanoseconds that were recorded.
        threads: The threads.
        names: (name, schema) of events by number.
        begin, duration, name, kind, failed, sequence, detail, parent, depth, thread: Columns of events. `kind` is 0 for
            operators, else 1 more than the kind of the span; `parent` is -1 at the top.
        memory: Columns of what was taken and given back: ``at``, ``bytes``, ``address``, ``event`` (-1: outside all),
            ``device``, ``thread``; in the order of time.
        activities: What devices did.
        backends: Names of the backends by their numbers.
        used_bytes: Room that the recording took.
    """

    def __init__(self, raw: dict[str, Any], thread_names: dict[int | None, str] | None = None) -> None:
        self.started: int = raw["started"]
        self.length: int = raw["stopped"] - raw["started"]
        self.names: list[tuple[str, str]] = raw["names"]
        self.used_bytes: int = raw["used"]
        self._places: list[tuple[int, str, str, int]] = raw["stacks"]
        known = thread_names or {}
        self.threads = [
            ThreadInfo(t["number"], t["id"], known.get(t["id"], ""), t["dropped"]) for t in raw["threads"]
        ]
        self.pid = os.getpid()
        self._details: list[tuple[int, ...]] = []
        self._collect(raw["threads"])
        self.backends: list[str] = raw["backends"]
        self.activities = Activities(raw, joined_works(raw["threads"], self._firsts))
        self.length = max(self.length, self.activities.end)

    def _collect(self, threads: list[dict[str, Any]]) -> None:
        events: dict[str, list[Numbers]] = {name: [] for name in (*_EVENT_COLUMNS, "thread")}
        memory: dict[str, list[Numbers]] = {name: [] for name in (*_MEMORY_COLUMNS, "thread")}
        numbers: dict[tuple[int, ...], int] = {}
        self._firsts: list[int] = []
        count = 0
        for thread in threads:
            self._firsts.append(count)
            columns = {name: np.frombuffer(thread["events"][name], t) for name, t in _EVENT_COLUMNS.items()}
            own = np.array([numbers.setdefault(item, len(numbers)) for item in thread["details"]], np.int32)
            parent = columns["parent"]
            columns["detail"] = own[columns["detail"]]
            columns["parent"] = np.where(parent >= 0, parent + np.int32(count), parent)
            columns["thread"] = np.full(len(parent), thread["number"], np.int32)
            uses = {name: np.frombuffer(thread["memory"][name], t) for name, t in _MEMORY_COLUMNS.items()}
            uses["event"] = np.where(uses["event"] >= 0, uses["event"] + np.int32(count), uses["event"])
            uses["thread"] = np.full(len(uses["at"]), thread["number"], np.int32)
            for name, column in columns.items():
                events[name].append(column)
            for name, column in uses.items():
                memory[name].append(column)
            count += len(parent)
        self._details = list(numbers)
        joined = {name: _joined(parts, _EVENT_COLUMNS.get(name, np.int32)) for name, parts in events.items()}
        self.begin, self.duration = joined["begin"], joined["length"]
        self.name, self.kind, self.failed = joined["name"], joined["kind"], joined["failed"].astype(bool)
        self.sequence, self.detail, self.parent = joined["sequence"], joined["detail"], joined["parent"]
        self.depth, self.thread = joined["depth"], joined["thread"]
        self.memory = {
            name: _joined(parts, _MEMORY_COLUMNS.get(name, np.int32)) for name, parts in memory.items()
        }
        order = np.argsort(self.memory["at"], kind="stable")
        self.memory = {name: column[order] for name, column in self.memory.items()}

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def dropped(self) -> int:
        """Events, uses of memory and activities of devices for which there was no room."""
        return sum(thread.dropped for thread in self.threads) + self.activities.dropped

    def self_duration(self) -> Numbers:
        """Nanoseconds of each event without those of the events directly within it."""
        inside = self.parent >= 0
        children = np.bincount(
            self.parent[inside], weights=self.duration[inside].astype(np.float64), minlength=len(self)
        )
        return self.duration - children.astype(np.int64)

    def self_memory(self, device: int = 0) -> Numbers:
        """Bytes that each event itself took, less those that it gave back, on a kind of device."""
        uses = self.memory
        wanted = (uses["event"] >= 0) & ((uses["device"] >> 16 == 0) == (device == 0))
        taken = np.bincount(
            uses["event"][wanted], weights=uses["bytes"][wanted].astype(np.float64), minlength=len(self)
        )
        return taken.astype(np.int64)

    def with_children(self, own: Numbers) -> Numbers:
        """Of each event what it and all events within it have."""
        total = own.copy()
        if not len(total):
            return total
        order = np.argsort(self.depth, kind="stable")
        bounds = np.searchsorted(self.depth[order], np.arange(self.depth.max() + 2))
        for depth in range(int(self.depth.max()), 0, -1):
            level = order[bounds[depth] : bounds[depth + 1]]
            np.add.at(total, self.parent[level], total[level])
        return total

    def unclaimed_memory(self, device: int = 0) -> list[int]:
        """Bytes taken and given back outside all events, one number for each use."""
        uses = self.memory
        wanted = (uses["event"] < 0) & ((uses["device"] >> 16 == 0) == (device == 0))
        return uses["bytes"][wanted].tolist()

    # --- what events refer to ---

    def detail_words(self, detail: int) -> tuple[int, ...]:
        """The words of a detail: the number of the place, how arguments are told, and the arguments."""
        return self._details[detail]

    def stack_of(self, detail: int) -> list[str]:
        """Lines "file(line): function" of a detail, the innermost first; those of this package are left out."""
        words = self._details[detail]
        place = words[0] if words else 0
        lines = []
        while place:
            place, file, function, line = self._places[place]
            if not file.startswith(_HERE):
                lines.append(f"{file}({line}): {function}")
        return lines


def _joined(parts: list[Numbers], dtype: Any) -> Numbers:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
