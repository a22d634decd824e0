"""The workers of a loader, as the loader sees them: tasks go out, answers come in, faults are told."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import socket
import time
import weakref
from collections.abc import Iterator
from typing import Any

from taeda_data import packing, workers
from taeda_data.reading import Failed
from taeda_data.workers import Plan
from taeda_registry.slots import multiprocessing as parallel
from taeda_registry.slots import tensor

_LONG = 1000
_GRACE = 2.0  # seconds that a worker gets to finish what it is doing


class ProcessCrew:
    """Workers in processes of their own.

    Args:
        plan: what they read.
        context: a multiprocessing context, the name of a start method, or None.
    """

    def __init__(self, plan: Plan, context: Any) -> None:
        if context is None or isinstance(context, str):
            context = parallel.get_context(context)
        forked = context.get_start_method() == "fork"
        self._ends: list[Any] = []
        self._processes: list[Any] = []
        self._finalizer = weakref.finalize(self, _end, os.getpid(), self._ends, self._processes)
        self._finalizer.atexit = False  # multiprocessing ends daemons itself
        if forked:
            plan.packed = packing.pack(plan.dataset)
        for number in range(plan.workers):
            ours, theirs = context.Pipe()
            others = [*self._ends, ours] if forked else []
            process = context.Process(
                target=workers.run_process, args=(plan, number, theirs, others), daemon=True
            )
            process.start()
            theirs.close()
            self._ends.append(ours)
            self._processes.append(process)
        plan.packed = []  # the workers have theirs
        self._by_end = {end.fileno(): number for number, end in enumerate(self._ends)}
        self._by_sentinel = {process.sentinel: number for number, process in enumerate(self._processes)}
        # One for each worker, and one for all; the death of any is noticed by each.
        self._polls = [self._poll([end]) for end in self._ends] + [self._poll(self._ends)]

    def _poll(self, ends: list[Any]) -> Any:
        poll = select.poll()
        for descriptor in (*(end.fileno() for end in ends), *self._by_sentinel):
            poll.register(descriptor, select.POLLIN)
        return poll

    def send(self, worker: int, message: tuple[Any, ...]) -> None:
        """Give a worker something to do."""
        # That it is dead is told where its answer is waited for.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._ends[worker].send(message)

    def receive(self, worker: int | None, timeout: float | None) -> tuple[int, tuple[Any, ...]]:
        """The next answer of a worker (None: of any), with who gave it.

        Raises:
            RuntimeError: A worker has died, or none answered in time.
        """
        try:
            number = self._ready(self._polls[-1 if worker is None else worker], timeout)
            return number, self._ends[number].recv()
        except (EOFError, ConnectionResetError):
            raise self._death(number) from None

    def _ready(self, poll: Any, timeout: float | None) -> int:
        """A worker that has something to say, or has closed its end."""
        found = poll.poll(None if timeout is None else max(timeout * 1000, 1))
        if not found:
            raise _late(timeout, [process.pid for process in self._processes])
        for descriptor, _ in found:
            if descriptor in self._by_end:
                return self._by_end[descriptor]
        raise self._death(self._by_sentinel[found[0][0]])

    def _death(self, worker: int) -> RuntimeError:
        process = self._processes[worker]
        process.join(1)
        code = process.exitcode
        how = f"exit status {code}"
        if code is not None and code < 0:
            how = f"signal {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += ", as sent to processes when memory runs out"
        return RuntimeError(
            f"DataLoader: worker {worker} (pid {process.pid}) exited unexpectedly: {how}; num_workers=0 shows "
            "where in the data set"
        )

    def close(self) -> None:
        """End all workers."""
        self._finalizer()


def _end(owner: int, ends: list[Any], processes: list[Any]) -> None:
    if os.getpid() != owner:  # a child of fork, whose copy of the crew is gone
        ends.clear()
        return
    for end in ends:
        _hang_up(end)
    pids = tuple(process.pid for process in processes)
    limit = time.monotonic() + _GRACE
    for ending in (None, "terminate", "kill"):
        for process in processes:
            if ending and process.is_alive():
                getattr(process, ending)()
        for process in processes:
            process.join(max(0.0, limit - time.monotonic()))
        limit = time.monotonic() + 1
    for process in processes:
        if not process.is_alive():
            process.close()
    ends.clear()
    processes.clear()
    leave = getattr(getattr(parallel, "reductions", None), "leave_dead", None)
    if leave is not None:
        leave(pids)  # what they sent and nobody has read


def _hang_up(end: Any) -> None:
    """Close a connection, also where the workers of another crew, forked since, hold a copy of this end."""
    with contextlib.suppress(OSError):  # no socket, or closed already
        shared = socket.socket(fileno=os.dup(end.fileno()))
        with shared:
            shared.shutdown(socket.SHUT_RDWR)
    end.close()


class ThreadCrew:
    """Workers in threads: for data sets that leave Python's lock, and for Pythons that have none."""

    def __init__(self, plan: Plan) -> None:
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._tasks: list[Any] = [queue.SimpleQueue() for _ in range(plan.workers)]
        self._waiting: list[list[Any]] = [[] for _ in range(plan.workers)]
        self._finalizer = weakref.finalize(self, _stop, self._tasks)
        for number, tasks in enumerate(self._tasks):
            workers.thread(plan, number, tasks, self._results).start()

    def send(self, worker: int, message: tuple[Any, ...]) -> None:
        """Give a worker something to do."""
        self._tasks[worker].put(message)

    def receive(self, worker: int | None, timeout: float | None) -> tuple[int, tuple[Any, ...]]:
        """The next answer of a worker (None: of any), with who gave it; RuntimeError when there is none in time."""
        for number in range(len(self._tasks)) if worker is None else (worker,):
            if self._waiting[number]:
                return number, self._waiting[number].pop(0)
        while True:
            try:
                number, answer = self._results.get(timeout=timeout)
            except queue.Empty:
                raise _late(timeout, []) from None
            if worker is None or number == worker:
                return number, answer
            self._waiting[number].append(answer)

    def close(self) -> None:
        """Tell all workers to end after what they are doing."""
        self._finalizer()


def _stop(tasks: list[Any]) -> None:
    for waiting in tasks:
        while not waiting.empty():
            try:
                waiting.get_nowait()
            except queue.Empty:
                break
        waiting.put(None)


def _late(timeout: float | None, pids: list[int]) -> RuntimeError:
    which = f"workers (pids {', '.join(map(str, pids))})" if pids else "worker threads"
    return RuntimeError(f"DataLoader timed out after {timeout} seconds: no batch from its {which}")


Crew = ProcessCrew | ThreadCrew


class Epoch:
    """One pass of a crew over groups of indices: prefetches, keeps the order, hands errors on.

    Args:
        crew: the workers.
        count: how many they are.
        number: of the epoch, which answers of earlier ones do not have.
        groups: an iterator of groups; for iterable data sets endless.
        prefetch: batches that each worker is ahead.
        in_order: hand batches out in the order of their groups.
        timeout: seconds to wait for a batch; 0 for ever.
        first: number of the first batch.
    """

    def __init__(
        self,
        crew: Crew,
        count: int,
        number: int,
        groups: Any,
        prefetch: int,
        in_order: bool,
        timeout: float,
        first: int,
    ) -> None:
        self._crew, self._count, self._number, self._groups = crew, count, number, groups
        self._in_order, self._timeout = in_order, timeout or None
        self._next_task = self._next_batch = first
        self._owner: dict[int, int] = {}  # who reads a batch that is out
        self._early: dict[int, tuple[Any, ...]] = {}
        self._active = [True] * count
        self._turn = 0
        for _ in range(prefetch * count):
            self._assign()

    def _assign(self, worker: int | None = None) -> None:
        if not any(self._active):
            return
        if worker is None or not self._active[worker]:
            while not self._active[self._turn % self._count]:
                self._turn += 1
            worker = self._turn % self._count
            self._turn += 1
        try:
            group = next(self._groups)
        except StopIteration:
            return
        self._owner[self._next_task] = worker
        if isinstance(group, list) and len(group) > _LONG and all(type(i) is int for i in group):
            # Shared memory for what could fill a pipe, at whose other end somebody may wait to write.
            group = workers.Packed(tensor.tensor(group))
        self._crew.send(worker, (workers.READ, self._number, self._next_task, group))
        self._next_task += 1

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._owner:
            answer = self._answer()
            worker = self._owner.pop(answer[2])
            if answer[0] == workers.END:
                self._active[worker] = False
                self._assign()
                continue
            # Without an order, who was quick gets the next task.
            self._assign(None if self._in_order else worker)
            if answer[0] == workers.ERROR:
                error = workers.unpacked(answer[3])
                if isinstance(error, Exception):
                    return Failed(error)
                raise error
            return answer[3]
        raise StopIteration

    def _answer(self) -> tuple[Any, ...]:
        if not self._in_order:
            return self._receive(None)
        while self._next_batch not in self._owner:
            self._next_batch += 1
        wanted = self._next_batch
        self._next_batch += 1
        while wanted not in self._early:
            answer = self._receive(self._owner[wanted])
            self._early[answer[2]] = answer
        return self._early.pop(wanted)

    def _receive(self, worker: int | None) -> tuple[Any, ...]:
        while True:
            _, answer = self._crew.receive(worker, self._timeout)
            if answer[2] is None:  # the start of an epoch failed
                raise workers.unpacked(answer[3])
            if answer[1] == self._number:
                return answer
