"""What may happen to a loader with workers: one clear error in time, and no process, thread, descriptor or name left.

`test_workers.py` has the rest of the table: exceptions that cannot be sent, hangs, loaders within loaders, interrupts.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import fault_sets as faults
import pytest

import taeda_data as data
from taeda_registry.slots import tensor as tt

pytest.importorskip("taeda_multiprocessing", reason="processes need taeda-multiprocessing")
pytestmark = pytest.mark.usefixtures("nothing_left")

SOON = 60  # seconds: two are aimed at, on a machine that has nothing else to do


def read(dataset, **options):
    """All batches of a loader with two workers, of which the first fails."""
    options = {"batch_size": 2, "num_workers": 2, **options}
    return list(data.DataLoader(dataset, **options))


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("segfault", RuntimeError, r"worker 0 .* signal SIGSEGV"),
        ("exit_as_if_well", RuntimeError, r"worker 0 .* exit status 0"),
        ("close_everything", RuntimeError, r"worker 0 .* exit status"),
        ("stop_itself", RuntimeError, "timed out after 0.5 seconds"),
        ("stop_iteration", RuntimeError, "raised StopIteration"),
        ("interrupt", RuntimeError, r"worker 0 .* exit status 1"),
        ("generator_exit", GeneratorExit, None),
        ("memory", MemoryError, "allocate"),
        ("recursion", RecursionError, "maximum recursion depth"),
        ("group", ExceptionGroup, "several"),
        ("chained", ValueError, "the second"),
        ("long_text", ValueError, "xxx"),
        ("different_shape", TypeError, "ragged"),
        ("lambda_sample", TypeError, "function"),
    ],
)
def test_a_worker_fails(what, error, words):
    begin = time.monotonic()
    with pytest.raises(error, match=words) as info:
        read(faults.Failing(what), timeout=0.5 if what == "stop_itself" else 0)
    assert time.monotonic() - begin < SOON
    if what == "chained":
        assert "the first" in str(info.value.__cause__)  # in the worker's traceback
    if what == "group":
        assert [type(e) for e in info.value.exceptions] == [ValueError, FileNotFoundError]


@pytest.mark.parametrize("what", ["thread_that_stays", "child_that_stays"])
def test_what_a_worker_leaves_running_holds_nothing_up(what):
    begin = time.monotonic()
    assert [batch.tolist() for batch in read(faults.Failing(what))] == [[i, i + 1] for i in range(0, 16, 2)]
    assert time.monotonic() - begin < SOON


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"collate_fn": faults.failing_collate}, ZeroDivisionError, "cannot be joined"),
        ({"collate_fn": faults.unsendable_collate}, TypeError, "pickle"),
        ({"sampler": faults.failing_sampler()}, IndexError, "no more indices"),
        ({"worker_init_fn": faults.kill_parent_of_two}, RuntimeError, "worker 1 .* SIGKILL"),
        ({"collate_fn": lambda x: x, "multiprocessing_context": "spawn"}, Exception, "pickle"),
    ],
    ids=["collate", "unsendable", "sampler", "init", "spawn"],
)
def test_what_belongs_to_the_loader_fails(options, error, words):
    with pytest.raises(error, match=words):
        read(range(16), **options)


@pytest.mark.parametrize(("at", "words"), [(0, "no stream"), (3, "is broken")])
def test_a_stream_fails(at, words):
    with pytest.raises(OSError, match=words):
        read(faults.FailingStream(at))


def test_a_data_set_that_a_spawned_worker_cannot_load():
    with pytest.raises(RuntimeError, match=r"worker \d .* exit status 1"):
        read(faults.Unloadable(), multiprocessing_context="spawn")


def test_a_death_is_told_while_another_worker_is_waited_for():
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"worker 1 .* exit status 9"):
        read(faults.Slow(), batch_size=1)
    assert time.monotonic() - begin < SOON


def test_the_second_worker_cannot_be_started(monkeypatch):
    import multiprocessing.process

    start, started = multiprocessing.process.BaseProcess.start, []

    def fail_second(process):
        started.append(process)
        if len(started) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        start(process)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", fail_second)
    with pytest.raises(BlockingIOError):
        read(range(16))


def test_descriptors_run_out():
    resource = pytest.importorskip("resource", reason="the system has no limits of processes")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, before[1]))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(3):
            os.close(taken.pop())
        with pytest.raises(OSError, match="Too many open files"):
            read(range(16))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)
    assert len(read(range(16))) == 8


def test_the_consumer_fails():
    with pytest.raises(ZeroDivisionError):
        for batch in data.DataLoader(range(16), batch_size=2, num_workers=2):
            batch.sum().item() // 0


def test_an_error_that_nobody_asks_for():
    """A worker fails at what was read ahead; the iterator is given up before."""
    begun = multiprocessing.Semaphore(0)
    iterator = iter(data.DataLoader(faults.Failing("chained", begun), batch_size=2, num_workers=2))
    assert next(iterator).tolist() == [0, 1]
    assert begun.acquire(timeout=SOON)
    del iterator


def test_an_iterator_in_a_ring():
    ring = [iter(data.DataLoader(range(16), batch_size=2, num_workers=2))]
    ring.append(ring)
    next(ring[0])
    del ring
    gc.collect()


def test_large_batches_that_nobody_reads():
    made = multiprocessing.Semaphore(0)
    iterator = iter(data.DataLoader(faults.Large(made=made), batch_size=1, num_workers=2))
    next(iterator)
    for _ in range(5):
        assert made.acquire(timeout=SOON)
    del iterator
    for batch in data.DataLoader(faults.Large(), batch_size=3, num_workers=2):
        assert batch.shape == (3, 1 << 20)
        break


def test_a_persistent_worker_is_killed_between_two_epochs():
    loader = data.DataLoader(range(16), batch_size=2, num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 8
    os.kill(loader._crew._processes[1].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker 1 .* SIGKILL"):
        list(loader)
    assert len(list(loader)) == 8  # with new workers
    del loader


def test_an_epoch_after_one_that_failed():
    loader = data.DataLoader(faults.Failing("chained"), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="the second"):
            list(loader)
    del loader


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("interrupt", KeyboardInterrupt, None),
        ("generator_exit", GeneratorExit, None),
        ("stop_iteration", RuntimeError, "StopIteration"),
        ("chained", ValueError, "the second"),
    ],
)
def test_a_worker_thread_fails(what, error, words):
    with pytest.raises(error, match=words):
        read(faults.Failing(what), worker_type="thread")


def test_a_worker_thread_is_late():
    asked_too_long = threading.Event()

    class Late(faults.Large):
        def __getitem__(self, i):
            return asked_too_long.wait(SOON)

    try:
        with pytest.raises(RuntimeError, match=r"timed out after 0.2 seconds"):
            read(Late(), worker_type="thread", timeout=0.2)
    finally:
        asked_too_long.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_of_fork_leaves_the_parents_workers_alone():
    loader = data.DataLoader(range(16), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            del iterator, loader
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 7


def test_forks_while_threads_use_the_library():
    """Workers start while other threads hold whatever locks kernels take."""
    stop = threading.Event()

    def compute():
        while not stop.is_set():
            (tt.rand(300, 300) @ tt.rand(300, 300)).exp().sum()

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert sum(len(batch) for batch in read(faults.Large(1000))) == 6
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_starts_after_kernels_ran_in_parallel():
    """`python packages/data/tests/test_faults.py 200` does it more often."""
    start_after_kernels(10)


def start_after_kernels(count):
    """Start loaders whose workers use the threads that the parent has used, too."""
    for _ in range(count):
        assert float((tt.rand(400, 400) @ tt.rand(400, 400)).sum()) > 0
        found = [int(batch.sum()) for batch in data.DataLoader(Products(), batch_size=2, num_workers=2)]
        assert found == [8_000_000 * 2] * 2


class Products(data.Dataset):
    """Samples that are computed with more than one thread where there are more."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        tt.set_num_threads(2)
        return (tt.ones(200, 200) @ tt.ones(200, 200)).sum()


if __name__ == "__main__":
    start_after_kernels(int(sys.argv[1]))
    print(f"{sys.argv[1]} starts of two workers: no hang")


COLLECTED = """
import gc
import taeda_tensor_core as tc
from taeda_data import DataLoader
from taeda_multiprocessing import _arena

gc.disable()
held = tc.ones(8).share_memory_()
abandoned = [iter(DataLoader([tc.ones(3)] * 100, num_workers=1))]
next(abandoned[0])
abandoned.append(abandoned)  # a ring, which the collector alone takes apart
del abandoned
is_left = _arena.Arena.is_left

def collecting(arena):
    "The collector runs whenever it likes: here while the table of shared memory is at work."
    found.append(gc.collect())
    return is_left(arena)

found = []
_arena.Arena.is_left = collecting
print(len(list(DataLoader([tc.ones(3)] * 4, num_workers=1))), max(found) > 0)
"""


def test_an_abandoned_iterator_is_collected_while_memory_is_looked_through():
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("4 True\n", 0), done.stderr
