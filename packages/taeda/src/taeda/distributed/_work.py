"""What a process waits for: communication that runs beside the program."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from taeda.futures import Future


class Work:
    """Communication that has begun."""

    def __init__(self, source: int | None = None) -> None:
        self._future = Future()
        self._source = source

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._future.done() and self._future._error is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return self._future._error

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the end; True.

        Raises:
            DistBackendError: What went wrong. RuntimeError: It did not end in time.
        """
        with self._future._changed:
            limit = None if timeout is None else timeout.total_seconds()
            if not self._future._changed.wait_for(self._future.done, limit):
                raise RuntimeError("Work.wait: Operation timed out!")
        self._future.value()
        return True

    def synchronize(self) -> None:
        """Waits for the end."""
        self.wait()

    def result(self) -> Any:
        """The tensors that were given, when it has ended."""
        return self._future.value()

    def get_future(self) -> Future:
        """The end as a future of the tensors that were given."""
        return self._future

    def source_rank(self) -> int:
        """From which process it came."""
        if self._source is None:
            raise RuntimeError("Work.source_rank: the source of a collective operation is all processes")
        return self._source


class Receiving(Work):
    """A tensor that is to come: taken where the program waits or asks."""

    def __init__(self, take: Callable[[bool], tuple[int, Any] | None]) -> None:
        super().__init__()
        self._ask, self._lock = take, threading.Lock()

    def _try(self, wait: bool) -> None:
        with self._lock:
            if self._future.done():
                return
            try:
                found = self._ask(wait)
            except Exception as error:
                self._future.set_exception(error)
                return
            if found is not None:
                self._source, result = found
                self._future.set_result(result)

    def is_completed(self) -> bool:
        self._try(False)
        return super().is_completed()

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._try(True)
        return super().wait(timeout)


class Worker:
    """A thread that does what it is given, one after the other; it begins with the first."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._name = name
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], Any]) -> Work:
        """Do it later; its result is that of the work."""
        work = Work()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((job, work))
        return work

    def _run(self) -> None:
        while True:
            item = self._jobs.get()
            if item is None:
                return
            job, work = item
            try:
                result = job()
            except BaseException as error:
                work._future.set_exception(error)
            else:
                work._future.set_result(result)
            del item, job, work

    def close(self) -> None:
        """End the thread when it has done what it was given."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def done(result: Any) -> Work:
    """Communication that has ended."""
    work = Work()
    work._future.set_result(result)
    return work
