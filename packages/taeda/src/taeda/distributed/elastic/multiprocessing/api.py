"""Processes that run one function or program, and end together when one of them fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from taeda.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from taeda_registry.slots import multiprocessing

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult",
    "SignalException", "Std", "SubprocessContext", "start_processes", "to_map",
]  # fmt: skip

# Between two looks at what a file has got, and until a process that was told to end is ended.
_PAUSE, _GRACE = 0.05, 30.0


class SignalException(Exception):
    """A signal told the process that started others to end.

    Args:
        msg: What to say.
        sigval: The signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Which of the streams of a process are meant."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """The streams in words of the command line: "3" for all processes, "0:1,1:3" by local rank.

        Raises:
            ValueError: Neither.
        """
        if re.fullmatch(r"[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"(\d+:[0-3],)*\d+:[0-3]", vm):
            return {int(rank): cls(int(one)) for rank, one in (item.split(":") for item in vm.split(","))}
        raise ValueError(f"Std: found {vm!r}, expected a number of 0 to 3 or RANK:NUMBER,RANK:NUMBER")


def to_map(val_or_map: Std | Mapping[int, Std], local_world_size: int) -> dict[int, Std]:
    """Streams of each process, by local rank; those that a mapping does not name have none.

    Example:
        >>> to_map(Std.OUT, 2)
        {0: <Std.OUT: 1>, 1: <Std.OUT: 1>}
    """
    ranks = range(local_world_size)
    if isinstance(val_or_map, Std):
        return dict.fromkeys(ranks, val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in ranks}


@dataclass
class LogsDest:
    """Files by local rank, "" for none: of what processes print, of what is shown too, of their exceptions."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)


class LogsSpecs(ABC):
    """Where processes print to.

    Args:
        log_dir: A folder; a new one by default.
        redirects: Which streams go to files.
        tee: Which go to files and are shown.
        local_ranks_filter: The processes that show anything; all by default.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of processes with these environments."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder."""


class DefaultLogsSpecs(LogsSpecs):
    """Files `FOLDER/JOB_*/attempt_RESTART/LOCAL_RANK/{stdout.log,stderr.log,error.json}`."""

    _run_folder: str | None = None

    @property
    def root_log_dir(self) -> str:
        if self._root_log_dir is None:
            self._root_log_dir = tempfile.mkdtemp(prefix="taeda_elastic_")
        os.makedirs(self._root_log_dir, exist_ok=True)
        return self._root_log_dir

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        redirects, tee = to_map(self._redirects, len(envs)), to_map(self._tee, len(envs))
        made = LogsDest()
        for rank, env in envs.items():
            if self._run_folder is None:
                job = env.get("TORCHELASTIC_RUN_ID", "job").replace(os.sep, "_")
                self._run_folder = tempfile.mkdtemp(prefix=f"{job}_", dir=self.root_log_dir)
            attempt = f"attempt_{env.get('TORCHELASTIC_RESTART_COUNT', '0')}"
            folder = os.path.join(self._run_folder, attempt, str(rank))
            os.makedirs(folder, exist_ok=True)
            silent = self._local_ranks_filter is not None and rank not in self._local_ranks_filter
            for std, name, kept, shown in (
                (Std.OUT, "stdout.log", made.stdouts, made.tee_stdouts),
                (Std.ERR, "stderr.log", made.stderrs, made.tee_stderrs),
            ):
                path = os.path.join(folder, name)
                kept[rank] = path if silent or std & (redirects[rank] | tee[rank]) else ""
                shown[rank] = path if std & tee[rank] and not silent else ""
            made.error_files[rank] = os.path.join(folder, "error.json")
        return made


@dataclass
class RunProcsResult:
    """What came of processes: what functions gave, or how they failed; by local rank, with their files."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether any failed."""
        return bool(self.failures)


class _Follower:
    """Shows what is written to a file, line by line, until it is told to stop."""

    def __init__(self, path: str, target: Any, prefix: str) -> None:
        self._path, self._target, self._prefix = path, target, prefix
        self._last = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not os.path.exists(self._path):
            if self._last.wait(_PAUSE) and not os.path.exists(self._path):
                return
        with open(self._path, encoding="utf-8", errors="replace") as file:
            while True:
                ending = self._last.is_set()
                for line in file:
                    self._target.write(self._prefix + line)
                self._target.flush()
                if ending:
                    return
                self._last.wait(_PAUSE)

    def stop(self) -> None:
        """Show the rest."""
        self._last.set()
        self._thread.join()


class PContext(ABC):
    """Processes that run the same, one for each item of `args`; made by `start_processes`.

    Args: as `start_processes`.
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any] | str,
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
    ) -> None:
        if set(args) != set(range(len(args))) or set(envs) != set(args):
            raise RuntimeError(
                f"{name}: args has the local ranks {sorted(args)} and envs {sorted(envs)}, expected both to have "
                f"0 to {len(args) - 1}"
            )
        self.name, self.entrypoint, self.args, self.envs = name, entrypoint, args, envs
        self.nprocs, self._prefixes = len(args), log_line_prefixes or {}
        logs = logs_specs.reify(envs)
        self.stdouts, self.stderrs, self.error_files = logs.stdouts, logs.stderrs, logs.error_files
        self._shown = ((logs.tee_stdouts, sys.stdout), (logs.tee_stderrs, sys.stderr))
        self._followers: list[_Follower] = []

    def start(self) -> None:
        """Start the processes."""
        _ask_for_status()
        for files, target in self._shown:
            for rank, path in files.items():
                if path:
                    prefix = self._prefixes.get(rank, f"[{self.name}{rank}]:")
                    self._followers.append(_Follower(path, target, prefix))
        self._start()

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Wait until all are done or one fails, which ends the others.

        Args:
            timeout: For so many seconds at most; 0 looks once, a negative number waits as long as it takes.
            period: Seconds between two looks.

        Returns:
            What came of them, None while they still run.
        """
        limit = time.monotonic() + timeout if timeout >= 0 else None
        while True:
            found = self._poll()
            if found is not None:
                self.close()
                return found
            if limit is not None and time.monotonic() >= limit:
                return None
            self._sleep(period if limit is None else min(period, max(0.0, limit - time.monotonic())))

    def close(self, death_sig: signal.Signals | None = None, timeout: float = _GRACE) -> None:
        """End the processes that still run, and show the rest of what they printed.

        Args:
            death_sig: How they are told; SIGTERM by default.
            timeout: Seconds after which they are killed.
        """
        self._close(death_sig or signal.SIGTERM, timeout)
        while self._followers:
            self._followers.pop().stop()

    def _result(self, states: dict[int, int | None], values: dict[int, Any]) -> RunProcsResult | None:
        """What came of processes by their exit codes; None while others run and none has failed."""
        pids = self.pids()
        failures = {
            rank: ProcessFailure(rank, pids[rank], state, self.error_files[rank])
            for rank, state in states.items()
            if state
        }
        if failures or all(state == 0 for state in states.values()):
            return RunProcsResult({} if failures else values, failures, self.stdouts, self.stderrs)
        return None

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """Process numbers by local rank."""

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """What came of them; None while all that have ended have ended well and others run."""

    @abstractmethod
    def _sleep(self, seconds: float) -> None:
        """Wait, until one of them ends at the most."""

    @abstractmethod
    def _close(self, death_sig: signal.Signals, timeout: float) -> None: ...


def _environment(own: dict[str, str], error_file: str) -> dict[str, str]:
    return {**own, "TORCHELASTIC_ERROR_FILE": error_file}


class SubprocessContext(PContext):
    """Processes of a program, whose name `entrypoint` is."""

    def _start(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for rank, args in self.args.items():
            environment = {**os.environ, **_environment(self.envs[rank], self.error_files[rank])}
            with contextlib.ExitStack() as files:
                out, err = (
                    files.enter_context(open(paths[rank], "wb")) if paths[rank] else None
                    for paths in (self.stdouts, self.stderrs)
                )
                command = [str(self.entrypoint), *map(str, args)]
                self._running[rank] = subprocess.Popen(command, env=environment, stdout=out, stderr=err)

    def pids(self) -> dict[int, int]:
        return {rank: process.pid for rank, process in self._running.items()}

    def _poll(self) -> RunProcsResult | None:
        states = {rank: process.poll() for rank, process in self._running.items()}
        return self._result(states, dict.fromkeys(states))

    def _sleep(self, seconds: float) -> None:
        running = [process for process in self._running.values() if process.poll() is None]
        if not running:  # the last one ended since it was looked at
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            running[0].wait(min(seconds, _PAUSE) if len(self._running) > 1 else seconds)

    def _close(self, death_sig: signal.Signals, timeout: float) -> None:
        running = list(getattr(self, "_running", {}).values())
        for process in running:
            if process.poll() is None:
                process.send_signal(death_sig)
        limit = time.monotonic() + timeout
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()


@contextlib.contextmanager
def _redirected(descriptor: int, path: str) -> Iterator[None]:
    """A stream of this process goes to a file, if one is named: what C and what Python writes."""
    if not path:
        yield
        return
    redirect = (contextlib.redirect_stdout, contextlib.redirect_stderr)[descriptor - 1]
    (sys.stdout, sys.stderr)[descriptor - 1].flush()
    with open(path, "w", encoding="utf-8", buffering=1) as file, redirect(file):
        os.dup2(file.fileno(), descriptor)
        yield


def _run(
    entrypoint: Callable[..., Any],
    args: tuple[Any, ...],
    environment: dict[str, str],
    paths: tuple[str, str],
    done: Any,
) -> None:
    """What a process of a function does."""
    os.environ.update(environment)
    with _redirected(1, paths[0]), _redirected(2, paths[1]):
        done.send(record(lambda: entrypoint(*args))())
        done.close()


class MultiprocessContext(PContext):
    """Processes of a function, which is sent to them.

    Args: as `start_processes`.
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any],
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        **_: Any,
    ) -> None:
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self._context = multiprocessing.get_context(start_method)
        self._values: dict[int, Any] = {}

    def _start(self) -> None:
        self._running, self._pipes = {}, {}
        for rank, args in self.args.items():
            receive, send = self._context.Pipe(duplex=False)
            environment = _environment(self.envs[rank], self.error_files[rank])
            paths = (self.stdouts[rank], self.stderrs[rank])
            process = self._context.Process(
                target=_run,
                args=(self.entrypoint, args, environment, paths, send),
                name=f"{self.name}_{rank}",
            )
            process.start()
            send.close()
            self._running[rank], self._pipes[rank] = process, receive

    def pids(self) -> dict[int, int]:
        return {rank: process.pid for rank, process in self._running.items()}

    def _poll(self) -> RunProcsResult | None:
        # The states first: what one of them that has ended had to send is then there to be read.
        states = {rank: process.exitcode for rank, process in self._running.items()}
        for rank, pipe in self._pipes.items():  # also of those that wait for somebody to read
            if rank not in self._values and pipe.poll():
                with contextlib.suppress(EOFError):
                    self._values[rank] = pipe.recv()
        return self._result(states, self._values)

    def _sleep(self, seconds: float) -> None:
        from multiprocessing.connection import wait

        alive = [process.sentinel for process in self._running.values() if process.exitcode is None]
        wait([*alive, *(pipe for rank, pipe in self._pipes.items() if rank not in self._values)], seconds)

    def _close(self, death_sig: signal.Signals, timeout: float) -> None:
        running = list(getattr(self, "_running", {}).values())
        for process in running:
            if process.exitcode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, death_sig)
        limit = time.monotonic() + timeout
        for process in running:
            process.join(max(0.0, limit - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()


def _ask_for_status() -> None:
    """Let the system keep how processes ended: it does not where SIGCHLD is ignored, which programs inherit."""
    ignored = hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if ignored and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def start_processes(
    name: str,
    entrypoint: Callable[..., Any] | str,
    args: dict[int, tuple[Any, ...]],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    **_: Any,
) -> PContext:
    """Start a function or a program in several processes.

    Args:
        name: What messages call it.
        entrypoint: A function, or the path of a program.
        args: Its arguments by local rank.
        envs: What its environment has besides this process's, by local rank.
        logs_specs: Where it prints to.
        log_line_prefixes: What stands before each line that is shown, by local rank.
        start_method: "spawn", "fork" or "forkserver", of functions.

    Raises:
        RuntimeError: The local ranks of `args` and `envs` are not 0 to one number.

    Example:
        >>> context = start_processes("sum", sum, {0: ([1, 2],), 1: ([3],)}, {0: {}, 1: {}}, DefaultLogsSpecs())
        >>> context.wait().return_values
        {0: 3, 1: 3}
    """
    made: PContext
    if isinstance(entrypoint, str):
        made = SubprocessContext(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
    else:
        made = MultiprocessContext(name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes)
    try:
        made.start()
    except BaseException:
        made.close()
        raise
    return made
