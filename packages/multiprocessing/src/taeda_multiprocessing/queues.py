"""Queues that move tensors to shared memory when they are put, and send what is small at once."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import multiprocessing.queues
import select
from multiprocessing.reduction import ForkingPickler
from typing import Any

from taeda_multiprocessing import reductions
from taeda_multiprocessing.pool import Pool
from taeda_registry.slots import tensor

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

SimpleQueue = multiprocessing.queues.SimpleQueue

# What a pipe takes whole or not at all, with the four bytes that say how long a message is.
_AT_ONCE = getattr(select, "PIPE_BUF", 512) - 4
_NUMBERS = (int, float, bool, complex, type(None))


def _is_small(value: Any, depth: int = 2) -> bool:
    """Whether a message of it is surely short, seen without making it."""
    kind = type(value)
    if kind in _NUMBERS:
        return True
    if kind in (str, bytes):
        return len(value) < 256
    if depth and kind in (tuple, list, dict):
        items = [*value, *value.values()] if kind is dict else value
        return len(items) <= 16 and all(_is_small(item, depth - 1) for item in items)
    if isinstance(value, tensor.Tensor):
        return value.numel() * value.element_size() <= 1024 or reductions.is_shared(value)
    return False


class Queue(multiprocessing.queues.Queue):  # type: ignore[type-arg]
    """Python's queue of processes; tensors among what is put, in lists, tuples and dicts too, become shared.

    A small message goes into the pipe at once where the pipe has room and nothing waits before it; everything else goes
    through the thread that feeds the pipe, as in Python's.
    """

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; `Full` when there is no room in time."""
        reductions.share_nested(obj)
        if not self._put_at_once(obj):
            super().put(obj, block, timeout)

    def _put_at_once(self, obj: Any) -> bool:
        """Write an object into the pipe from here; False where that might wait, or overtake another one."""
        own: Any = self
        if own._closed or own._wlock is None or not _is_small(obj) or not own._sem.acquire(block=False):
            return False
        sent = False
        try:
            with own._notempty:
                # A feeder that waits for work has sent all that it was given.
                if own._buffer or (own._thread is not None and not own._notempty._waiters):
                    return False
                sent = self._write_at_once(obj)
        finally:
            if not sent:
                own._sem.release()
        return sent

    def _write_at_once(self, obj: Any) -> bool:
        own: Any = self
        if not own._wlock.acquire(block=False):
            return False
        try:
            room = select.poll()
            room.register(own._writer.fileno(), select.POLLOUT)
            if not any(events == select.POLLOUT for _, events in room.poll(0)):
                return False
            message = ForkingPickler.dumps(obj)
            if len(message) > _AT_ONCE:
                return False
            self._send(message)
            return True
        except Exception:  # the thread that feeds the pipe meets it too, and says so as Python's does
            return False
        finally:
            own._wlock.release()

    def _send(self, message: Any) -> None:
        own: Any = self
        own._writer.send_bytes(message)


class JoinableQueue(Queue, multiprocessing.queues.JoinableQueue):  # type: ignore[misc]
    """The same with ``task_done`` and ``join``."""

    def _send(self, message: Any) -> None:
        own: Any = self
        with own._cond:  # nobody is done with it before it counts
            super()._send(message)
            own._unfinished_tasks.release()


class _ForTensors:
    """Makes a context give these queues, and pools."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return get_context, (self.get_start_method(),)  # type: ignore[attr-defined]

    def Queue(self, maxsize: int = 0) -> Queue:
        """A queue for tensors."""
        return Queue(maxsize, ctx=self.get_context())  # type: ignore[attr-defined]

    def JoinableQueue(self, maxsize: int = 0) -> JoinableQueue:
        """A joinable queue for tensors."""
        return JoinableQueue(maxsize, ctx=self.get_context())  # type: ignore[attr-defined]

    def Pool(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> Pool:
        """A pool for tensors."""
        return Pool(processes, initializer, initargs, maxtasksperchild, context=self.get_context())  # type: ignore[attr-defined]


_contexts: dict[str, Any] = {}


def get_context(method: str | None = None) -> Any:
    """Python's context of a start method, with queues and pools for tensors.

    Args:
        method: "fork", "spawn" or "forkserver"; None is the current one.

    Raises:
        ValueError: There is no such method.
    """
    plain = multiprocessing.get_context(method)
    name = plain.get_start_method()
    if name not in _contexts:
        kind = type(plain)
        _contexts[name] = type(kind.__name__, (_ForTensors, kind), {})()
    return _contexts[name]
