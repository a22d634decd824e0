"""Where clean interpreters find what their workers read, and what no test of workers may leave."""

import gc
import sys
import threading
from pathlib import Path

import pytest

from taeda_testing.settling import children, descriptors, eventually, shared_names, shared_names_since

sys.path.insert(0, str(Path(__file__).parent))


def here() -> tuple[set[int], set[threading.Thread], dict[int, str]]:
    """What a process may have too much of: children, threads, descriptors."""
    return children(), set(threading.enumerate()), descriptors()


@pytest.fixture
def nothing_left():
    """Fails when a test leaves a process, a thread, a descriptor or a name in /dev/shm."""
    import multiprocessing.resource_tracker

    from taeda_multiprocessing import reductions

    from taeda_registry.slots import tensor

    # What the first of them keeps: an arena for what is sent, Python's tracker of semaphores.
    tensor.ones(1).share_memory_()
    multiprocessing.resource_tracker.ensure_running()
    gc.collect()
    names, (processes, threads, before) = shared_names(), here()
    yield

    def nothing_more() -> None:
        gc.collect()
        reductions.leave_dead()
        now = here()
        assert now[0] <= processes and now[1] <= threads
        assert len(now[2]) <= len(before), (before, now[2])
        assert not shared_names_since(names)

    eventually(nothing_more)
