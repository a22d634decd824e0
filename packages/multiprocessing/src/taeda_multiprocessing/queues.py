"""Queues that move tensors to shared memory when they are put, not later in the thread that feeds the pipe."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import multiprocessing.queues
from typing import Any

from taeda_multiprocessing import reductions

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

SimpleQueue = multiprocessing.queues.SimpleQueue


class Queue(multiprocessing.queues.Queue):  # type: ignore[type-arg]
    """Python's queue of processes; tensors among what is put, in lists, tuples and dicts too, become shared."""

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; `Full` when there is no room in time."""
        reductions.share_nested(obj)
        super().put(obj, block, timeout)


class JoinableQueue(multiprocessing.queues.JoinableQueue):  # type: ignore[type-arg]
    """The same with ``task_done`` and ``join``."""

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; `Full` when there is no room in time."""
        reductions.share_nested(obj)
        super().put(obj, block, timeout)


class _Queues:
    """Makes a context give these queues."""

    def Queue(self, maxsize: int = 0) -> Queue:
        """A queue for tensors."""
        return Queue(maxsize, ctx=self.get_context())  # type: ignore[attr-defined]

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue:
        """A joinable queue for tensors."""
        return JoinableQueue(maxsize, ctx=self.get_context())  # type: ignore[attr-defined]


_contexts: dict[str, Any] = {}


def get_context(method: str | None = None) -> Any:
    """Python's context of a start method, with queues for tensors.

    Args:
        method: "fork", "spawn" or "forkserver"; None is the current one.

    Raises:
        ValueError: There is no such method.
    """
    plain = multiprocessing.get_context(method)
    name = plain.get_start_method()
    if name not in _contexts:
        kind = type(plain)
        _contexts[name] = type(kind.__name__, (_Queues, kind), {})()
    return _contexts[name]
