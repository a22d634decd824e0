"""For tests of what a whole process has, and of time: waiting until all has settled, and counts of what is one's own.

Threads, processes and descriptors of earlier tests may still be ending, the collector frees what they left at any
moment, other programs make names in /dev/shm, and on a loaded machine everything may come late.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: Seconds that everything has to settle, on however loaded a machine.
PATIENCE = 60.0
_SHARED = Path("/dev/shm")


def eventually(check: Callable[[], T], within: float = PATIENCE) -> T:
    """Repeats a check that may fail for a while, or now and then because others had the processor.

    Args:
        check: fails by an assertion.
        within: seconds.

    Returns:
        What the check gave when it held.

    Raises:
        AssertionError: The last failure; the check never held.

    Example::

        def all_closed():
            assert len(descriptors()) <= before

        eventually(all_closed)
    """
    end, pause = time.monotonic() + within, 0.001
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() >= end:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """What earlier tests left to the collector is gone, and within the block nothing is collected."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def children() -> set[int]:
    """Processes that this one has started and not yet waited for."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found |= {int(pid) for pid in (task / "children").read_text(encoding="ascii").split()}
    return found


def descriptors() -> dict[int, str]:
    """What each open descriptor of this process stands for."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself, and what others close meanwhile
            found[int(number)] = os.readlink(f"/proc/self/fd/{number}")
    return found


def shared_names() -> set[str]:
    """Names in /dev/shm, except those of semaphores, which Python gives up at once."""
    return {name for name in os.listdir(_SHARED) if not name.startswith("sem.")}


def shared_names_since(before: set[str]) -> set[str]:
    """Names in /dev/shm that were not there before and that no program beside this one uses."""
    new = shared_names() - before
    return new - _used_by_others(new) if new else new


def _used_by_others(names: set[str]) -> set[str]:
    """Of names in /dev/shm, those that are mapped by processes outside of this one's group."""
    found: set[str] = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):  # processes that have ended, and those of other users
            if os.getpgid(int(maps.parent.name)) != os.getpgrp():
                text = maps.read_text(encoding="utf-8", errors="replace")
                found |= {name for name in names if f"{_SHARED}/{name}" in text}
    return found
