"""Starting a function in several processes, and learning what went wrong in the first that failed."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process of `start_processes` has failed.

    Attributes:
        msg: What happened.
        error_index: Number of the process.
        pid: Its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the text is the process's own traceback."""


class ProcessExitedException(ProcessException):
    """The process ended otherwise.

    Attributes:
        exit_code: Its status, negative for a signal; None where the system keeps none, as SIGCHLD is ignored.
        signal_name: Name of that signal, or None.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int | None,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


# What a process says that has done its work; others say how they failed.
_DONE = "done"


def _ended(process: Any, timeout: float) -> bool:
    """Whether a process ends within that time; its remains are collected then."""
    ended = bool(multiprocessing.connection.wait([process.sentinel], max(0.0, timeout)))
    if ended:
        process.join()
    return ended


def _run(fn: Callable[..., Any], index: int, args: Sequence[Any], report: Any) -> None:
    try:
        fn(index, *args)
        with contextlib.suppress(OSError):  # nobody listens any more
            report.send(_DONE)
    except KeyboardInterrupt:
        pass  # the parent has it too, and tells
    except Exception:
        report.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together.

    Attributes:
        processes: The processes.
    """

    def __init__(self, processes: list[Any], reports: list[Any]) -> None:
        self.processes, self._reports = processes, reports
        self._words: dict[int, str] = {}
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Process ids in order."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; where it failed, end the others and raise.

        Args:
            timeout: Seconds to wait at most; None waits as long as it takes.
            grace_period: Seconds the others get after a failure before they are told to end.

        Returns:
            Whether all have ended. Call again until it is True.

        Raises:
            ProcessRaisedException: The function raised in one of them.
            ProcessExitedException: One ended otherwise, with a status other than 0.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if not self._succeeded(index) and failed is None:
                failed = index
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        self._fail(failed)
        raise AssertionError("not reached")

    def _succeeded(self, index: int) -> bool:
        code = self.processes[index].exitcode
        # A system that ignores SIGCHLD keeps no status of the dead; what they said last tells as much.
        return code == 0 if code is not None else self._last_word(index) == _DONE

    def _last_word(self, index: int) -> str:
        """What a process that has ended said of itself; nothing where it had no time to."""
        if index not in self._words:
            report = self._reports[index]
            try:
                self._words[index] = report.recv() if report.poll() else ""
            except (EOFError, pickle.UnpicklingError, OSError):
                self._words[index] = ""
        return self._words[index]

    def _end_others(self, grace_period: float | None) -> None:
        if grace_period:
            end = time.monotonic() + grace_period
            for process in self.processes:
                _ended(process, end - time.monotonic())
        for process in self.processes:
            if not _ended(process, 0):
                process.terminate()
        end = time.monotonic() + 30
        for process in self.processes:
            if not _ended(process, end - time.monotonic()):
                warnings.warn(f"process {process.pid} does not end on SIGTERM; it is killed", stacklevel=4)
                process.kill()
                process.join()

    def _fail(self, index: int) -> None:
        process, text = self.processes[index], self._last_word(index)
        if text not in ("", _DONE):
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code is None:
            raise ProcessExitedException(
                f"process {index} terminated with an unknown status, as SIGCHLD is ignored",
                index,
                process.pid,
                None,
            )
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


class SpawnContext(ProcessContext):
    """The context that `spawn` returns."""


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call ``fn(i, *args)`` in ``nprocs`` processes, i from 0.

    Args:
        fn: Called in each; for start methods other than "fork" a function of a module.
        args: What it gets after its number.
        nprocs: Number of processes.
        join: Wait for all of them.
        daemon: End them with this process.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None after waiting, else the ProcessContext.

    Raises:
        ProcessRaisedException, ProcessExitedException: As for `ProcessContext.join`.

    Example:
        >>> mp.start_processes(train, args=(model,), nprocs=2, start_method="fork")
    """
    from taeda_multiprocessing.queues import get_context

    context = get_context(start_method)
    processes, reports = [], []
    for index in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, sender), daemon=daemon)
        process.start()
        sender.close()
        processes.append(process)
        reports.append(receiver)
    started = (SpawnContext if start_method == "spawn" else ProcessContext)(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with clean interpreters.

    Example:
        >>> mp.spawn(train, args=(model,), nprocs=2)
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
