"""Locks that forked children have free."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from taeda_registry import forks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def in_child(work) -> bool:
    """Whether a forked child does the work to its end."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a child that waits for a lost lock ends by a signal
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


@pytest.fixture(params=[threading.Lock, threading.RLock, threading.Condition])
def lock(request):
    return forks.held_at_fork(request.param())


class Holder:
    """Another thread that has a lock until it is told to give it back."""

    def __init__(self, lock) -> None:
        self.change, self._has = [], threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(lock,))
        self._thread.start()
        self._has.wait()

    def _hold(self, lock) -> None:
        with lock:
            self.change.append("begun")
            self._has.set()
            self._end.wait()
            time.sleep(0.05)
            self.change.append("done")

    def give_back(self, join=True) -> None:
        self._end.set()
        if join:
            self._thread.join()


def take(lock) -> None:
    with lock:
        pass


def test_the_child_has_a_lock_free_whose_holder_waits_for_the_parent(lock):
    holder = Holder(lock)
    began = time.monotonic()
    assert in_child(lambda: take(lock))
    assert time.monotonic() - began > 0.9  # it was waited for
    holder.give_back()
    take(lock)


def test_the_child_finds_nothing_half_changed(lock):
    holder = Holder(lock)
    holder.give_back(join=False)

    def look():
        take(lock)
        assert holder.change == ["begun", "done"]

    assert in_child(look)
    holder.give_back()
    take(lock)


def test_holders_of_locks_in_any_order_are_waited_for_together():
    first, second = (forks.held_at_fork(threading.Lock()) for _ in range(2))
    stop = threading.Event()

    def work(outer, inner):
        while not stop.is_set():
            with outer:
                time.sleep(0.0005)
                if inner.acquire(timeout=0.001):
                    inner.release()

    threads = [threading.Thread(target=work, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: (take(first), take(second)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("busy", [False, True])
def test_a_thread_may_fork_while_it_has_a_reentrant_lock(busy):
    own, other = forks.held_at_fork(threading.RLock()), forks.held_at_fork(threading.Lock())
    holder = Holder(other) if busy else None
    with own:
        assert in_child(lambda: (take(own), own.release(), take(other)))
    with pytest.raises(RuntimeError):
        own.release()  # the parent's is given back as well
    if holder:
        holder.give_back()


def test_locks_that_have_ended_are_forgotten():
    before = len(forks._locks)
    lock = forks.held_at_fork(threading.Lock())
    assert len(forks._locks) == before + 1
    del lock
    assert len(forks._locks) == before
    assert in_child(lambda: None)
