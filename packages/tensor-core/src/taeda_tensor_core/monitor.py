"""Numbers and events of a running program, for whoever wants to hear of them."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from taeda_registry.forks import held_at_fork

__all__ = [
    "COUNT",
    "MAX",
    "MEAN",
    "MIN",
    "STAT_EVENT",
    "SUM",
    "VALUE",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]  # fmt: skip

#: Name of the events that statistics give.
STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | float | int | bool


class Aggregation(enum.Enum):
    """What a statistic makes of the numbers of a window."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN
_OF: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.VALUE: lambda numbers: numbers[-1],
    Aggregation.MEAN: lambda numbers: sum(numbers) / len(numbers),
    Aggregation.COUNT: len,
    Aggregation.SUM: sum,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}


@dataclass
class Event:
    """Something that happened: its name, when, and what is known of it."""

    name: str
    timestamp: datetime
    data: dict[str, data_value_t] = field(default_factory=dict)


class EventHandlerHandle:
    """What `register_event_handler` gives."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self.handler = handler


_handlers: list[EventHandlerHandle] = []
_lock = held_at_fork(threading.Lock())


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Let `callback` hear of every event.

    Example:
        >>> handle = taeda.monitor.register_event_handler(print)
        >>> taeda.monitor.unregister_event_handler(handle)
    """
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Let it hear no more."""
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tell all handlers of an event, on this thread."""
    with _lock:
        waiting = list(_handlers)
    for handle in waiting:
        handle.handler(event)


class Stat:
    """Numbers that are summed up over windows of time; the end of a window gives an event.

    Args:
        name: Stands before the aggregations in the event's data.
        aggregations: What is made of a window's numbers.
        window_size: Its length.
        max_samples: Numbers after which a window ends early; more are dropped until its time is over.

    Example:
        >>> stat = taeda.monitor.Stat("loss", [taeda.monitor.Aggregation.MEAN], timedelta(seconds=60))
        >>> stat.add(2.0)
        >>> stat.count
        1
    """

    def __init__(
        self,
        name: str,
        aggregations: Iterable[Aggregation],
        window_size: timedelta,
        max_samples: int = 2**63 - 1,
    ) -> None:
        self.name, self._made, self._limit = name, list(aggregations), max_samples
        self._seconds = window_size.total_seconds()
        self._numbers: list[float] = []
        self._is_full = False
        self._last = dict.fromkeys(self._made, 0.0)
        self._window = self._now()

    def _now(self) -> int:
        return int(time.monotonic() // self._seconds) if self._seconds else 0

    def add(self, v: float) -> None:
        """Add a number; the first of a new window ends the one before."""
        self._close_if_over()
        if self._is_full:
            return
        self._numbers.append(float(v))
        if len(self._numbers) >= self._limit:
            self._is_full = True
            self._log()

    def get(self) -> dict[Aggregation, float]:
        """The aggregations of the window that ended last, zeros before one has."""
        return dict(self._last)

    @property
    def count(self) -> int:
        """How many numbers the window has."""
        return len(self._numbers)

    def _close_if_over(self) -> None:
        now = self._now()
        if now != self._window:
            self._window, self._is_full = now, False
            if self._numbers:
                self._log()

    def _log(self) -> None:
        self._last = {a: float(_OF[a](self._numbers)) for a in self._made}
        data: dict[str, Any] = {f"{self.name}.{a.name.lower()}": number for a, number in self._last.items()}
        self._numbers = []
        log_event(Event(STAT_EVENT, datetime.now(), data))


class TensorboardEventHandler:
    """Writes the numbers of events to a writer with `add_scalar`, such as TensorBoard's."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        for name, value in event.data.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
