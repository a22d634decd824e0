"""Where clean interpreters find what their workers read, and what no test of workers may leave."""

import gc
import os
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def children() -> int:
    """Processes that this one has started and not yet waited for."""
    tasks = Path("/proc/self/task").glob("*/children")
    return sum(len(task.read_text(encoding="ascii").split()) for task in tasks)


def facts() -> tuple[int, int, int, set[str]]:
    """What must not grow: children, threads, descriptors, names in /dev/shm."""
    gc.collect()
    return (
        children(),
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")},
    )


def grown(before: tuple, after: tuple) -> bool:
    """Whether anything has."""
    return any(a > b for a, b in zip(after[:3], before[:3], strict=True)) or not after[3] <= before[3]


@pytest.fixture
def nothing_left():
    """Fails when a test leaves a process, a thread, a descriptor or a name in /dev/shm."""
    import multiprocessing.resource_tracker

    from taeda_multiprocessing import reductions

    from taeda_registry.slots import tensor

    # What the first of them keeps: an arena for what is sent, Python's tracker of semaphores.
    tensor.ones(1).share_memory_()
    multiprocessing.resource_tracker.ensure_running()
    before = facts()
    yield
    end = time.monotonic() + 4
    while grown(before, after := facts()) and time.monotonic() < end:
        time.sleep(0.05)
        reductions.leave_dead()
    assert not grown(before, after), (before, after)
