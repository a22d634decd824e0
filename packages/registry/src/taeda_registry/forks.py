"""What forks wait for: locks, and imports, of threads that the child does not have.

A child of fork has the forking thread alone: a lock that another one held would stay locked for ever, and what it
guards is half changed. So fork takes every lock that is named here first, and both processes have them free afterwards.
Parts are imported when they are first used, by whichever thread that is, under a lock of Python's for each module; fork
waits until no other thread has one. It waits for the holders, but not for long: one of them may wait for something that
the forking thread does. (The locks of native code: Note [Locks and fork].)
"""

from __future__ import annotations

import os
import time

# Threads and weak references as Python has them built in: this module is a part of every start.
from _thread import _local, get_ident
from _weakref import ref
from importlib import _bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _L = TypeVar("_L")

#: Seconds that a fork waits at most: for imports, and for locks.
_PATIENCE_FOR_IMPORTS = 5.0
_PATIENCE = 1.0
#: Seconds that it waits for one lock, with those before it in hand.
_TURN = 0.05
_INTERVAL = 0.001
_locks: list[ref[Any]] = []
_thread = _local()  # its `taken` and `left`: the locks that its fork has, and those that it did not get


def held_at_fork(lock: _L) -> _L:
    """The lock itself, which fork takes from now on for as long as the lock lives.

    Args:
        lock: A `threading.Lock`, `RLock` or `Condition`. A thread may fork while it has an `RLock`, and has it in the
            child too; what stands under the others must not fork.

    Example:
        >>> import threading
        >>> _lock = held_at_fork(threading.Lock())
    """
    _locks.append(ref(lock, _locks.remove))
    return lock


def _importers() -> set[int]:
    """Threads that hold the lock of a module of ours, or of one with PyTorch's name."""
    locks = getattr(_bootstrap, "_module_locks", {})
    held = [reference() for name, reference in list(locks.items()) if name.startswith(("taeda", "torch"))]
    return {lock.owner for lock in held if getattr(lock, "owner", None) is not None}


def _wait_for_imports() -> None:
    end = time.monotonic() + _PATIENCE_FOR_IMPORTS
    while (importers := _importers()) and get_ident() not in importers and time.monotonic() < end:
        time.sleep(_INTERVAL)


def _before() -> None:
    _wait_for_imports()
    _thread.taken, _thread.left = taken, left = [], []
    locks = [lock for each in list(_locks) if (lock := each()) is not None]
    limit = time.monotonic() + _PATIENCE
    while not _take(locks, taken) and time.monotonic() < limit:
        _give_back(taken)
    for lock in locks[len(taken) :]:  # none, unless the time is over: then those that are free at least
        (taken if lock.acquire(blocking=False) else left).append(lock)


def _take(locks: list[Any], taken: list[Any]) -> bool:
    """Take the locks in turn, up to one whose holder may wait for one of those before it."""
    for lock in locks:
        if not lock.acquire(timeout=_TURN):
            return False
        taken.append(lock)
    return True


def _give_back(taken: list[Any]) -> None:
    while taken:
        taken.pop().release()


def _in_parent() -> None:
    _give_back(_thread.taken)


def _in_child() -> None:
    for lock in _thread.left:
        lock._at_fork_reinit()  # as Python's own modules do
    _give_back(_thread.taken)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
