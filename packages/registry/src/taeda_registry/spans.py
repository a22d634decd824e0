"""Spans of time that parts mark for whoever watches. Nobody does, until a profiler says so.

A part that waits for something, or does something that a program would like to see by name, asks `watcher` each time:
it is None, or has ``begin(name, kind)`` and ``end(name, kind)``. Kinds are those of the C ABI (TAEDA_SPAN_*).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Protocol

    class Watcher(Protocol):
        """Who wants to know."""

        def begin(self, name: str, kind: int) -> None:
            """A span begins on this thread."""

        def end(self, name: str, kind: int) -> None:
            """It ends."""


WAIT = 4

watcher: Watcher | None = None

_END = object()


def waited_for(items: Iterable[Any], name: str) -> Iterator[Any]:
    """The same items; the wait for each is a span. Nothing here keeps an item that was handed out."""
    iterator = iter(items)
    while True:
        watching = watcher
        if watching is None:
            held = [next(iterator, _END)]
        else:
            watching.begin(name, WAIT)
            try:
                held = [next(iterator, _END)]
            finally:
                watching.end(name, WAIT)
        if held[0] is _END:
            return
        yield held.pop()
