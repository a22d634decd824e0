"""`elastic_launch`: what `taeda.distributed.run` does, for programs that start themselves."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from string import Template
from types import FrameType
from typing import Any

from taeda.distributed.elastic.multiprocessing import (
    DefaultLogsSpecs,
    LogsSpecs,
    SignalException,
    start_processes,
)
from taeda.distributed.elastic.multiprocessing.errors import ChildFailedError
from taeda.distributed.elastic.utils import macros

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many processes there are, and where they meet.

    Args:
        min_nodes, max_nodes: Machines; `max_nodes` of them take part.
        nproc_per_node: Processes on each.
        logs_specs: Where they print to; where this process does by default.
        run_id: A name of the job.
        role: What they are.
        rdzv_endpoint: "HOST:PORT" of the first machine; a free port of this one by default.
        rdzv_configs: "rank", the number of this machine.
        max_restarts: How often all are started again when one fails.
        monitor_interval: Seconds between two looks at them.
        start_method: "spawn", "fork" or "forkserver", of functions.
        log_line_prefix_template: What stands before each line that is shown, with ${role_name}, ${rank} and
            ${local_rank}.
        signals_to_handle: The signals that end them all.
        rdzv_backend, rdzv_timeout, metrics_cfg, local_addr, event_log_handler, numa_options,
            duplicate_stdout_filters, duplicate_stderr_filters, virtual_local_rank, shutdown_timeout: Accepted.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_nodes", "nproc_per_node"):
            if getattr(self, name) < 1:
                raise ValueError(f"LaunchConfig: {name} is {getattr(self, name)}, expected 1 or more")
        if self.max_nodes < self.min_nodes:
            raise ValueError(
                f"LaunchConfig: max_nodes is {self.max_nodes}, expected {self.min_nodes}, min_nodes, or more"
            )
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()


class elastic_launch:
    """Starts a function or a program in several processes when it is called, and waits for them.

    Args:
        config: How many, and where they meet.
        entrypoint: A function, which is sent to them, or the path of a program; None for this Python.

    Returns (the call with the arguments):
        What the function gave, by rank; None for a program.

    Raises (the call):
        ChildFailedError: One failed more often than `max_restarts`.

    Example:
        >>> config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend="c10d")
        >>> elastic_launch(config, train)("data")
        {0: 0.25, 1: 0.25}
    """

    def __init__(
        self,
        config: LaunchConfig,
        entrypoint: Callable[..., Any] | str | None,
        health_check_server: Any = None,
    ) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def _meeting_place(config: LaunchConfig) -> tuple[str, int]:
    """Host and port of the process with rank 0; a port for each start where there is one machine."""
    host, _, port = config.rdzv_endpoint.rpartition(":") if config.rdzv_endpoint else ("", "", "")
    if not host:
        host, port = (config.rdzv_endpoint or "127.0.0.1"), ""
    if config.max_nodes == 1 and (not port or int(port) == 0 or config.rdzv_backend != "static"):
        return ("127.0.0.1" if host in ("localhost", "") else host), _free_port()
    return host, int(port or 29400)


def _environments(config: LaunchConfig, restart: int) -> dict[int, dict[str, str]]:
    """What each process of this machine finds in its environment, by local rank."""
    here, nodes = config.nproc_per_node, config.max_nodes
    node = int(config.rdzv_configs.get("rank", 0))
    host, port = _meeting_place(config)
    shared = {
        "WORLD_SIZE": str(here * nodes), "LOCAL_WORLD_SIZE": str(here), "GROUP_RANK": str(node),
        "GROUP_WORLD_SIZE": str(nodes), "ROLE_NAME": config.role, "ROLE_WORLD_SIZE": str(here * nodes),
        "MASTER_ADDR": host, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": config.run_id,
        "TORCHELASTIC_MAX_RESTARTS": str(config.max_restarts), "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCHELASTIC_RESTART_COUNT": str(restart),
    }  # fmt: skip
    if here > 1 and "OMP_NUM_THREADS" not in os.environ:
        shared["OMP_NUM_THREADS"] = "1"
    return {
        local: {**shared, "RANK": str(rank), "ROLE_RANK": str(rank), "LOCAL_RANK": str(local)}
        for local, rank in enumerate(range(node * here, (node + 1) * here))
    }


def _prefixes(template: str | None, environments: dict[int, dict[str, str]]) -> dict[int, str] | None:
    if template is None:
        return None
    return {
        local: Template(template).safe_substitute(
            role_name=env["ROLE_NAME"], rank=env["RANK"], local_rank=env["LOCAL_RANK"]
        )
        for local, env in environments.items()
    }


@contextlib.contextmanager
def _ended_by(signals: str) -> Iterator[None]:
    """A block that each of these signals ends with SignalException, in the main thread."""
    before = {}

    def end(number: int, _: FrameType | None) -> None:
        raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))

    if threading.current_thread() is threading.main_thread():
        for name in filter(None, signals.split(",")):
            if name != "SIGINT" and hasattr(signal, name):  # which Python has an exception for
                number = getattr(signal, name)
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _name(entrypoint: Callable[..., Any] | str, args: list[Any]) -> str:
    if not isinstance(entrypoint, str):
        return getattr(entrypoint, "__qualname__", repr(entrypoint))
    words = [str(arg) for arg in args if not str(arg).startswith("-")]
    return words[0] if os.path.basename(entrypoint).startswith("python") and words else entrypoint


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any], health_check_server: Any = None
) -> dict[int, Any]:  # fmt: skip
    """What `elastic_launch(config, entrypoint)(*args)` does."""
    entrypoint = sys.executable if entrypoint is None else entrypoint
    config.run_id = config.run_id or str(uuid.uuid4().int)
    name, failures = _name(entrypoint, args), {}
    assert config.logs_specs is not None
    for restart in range(config.max_restarts + 1):
        environments = _environments(config, restart)
        given = {
            local: tuple(macros.substitute(args, str(local)) if isinstance(entrypoint, str) else args)
            for local in environments
        }
        with _ended_by(config.signals_to_handle):
            context = start_processes(
                config.role,
                entrypoint,
                given,
                environments,
                config.logs_specs,
                _prefixes(config.log_line_prefix_template, environments),
                config.start_method,
            )
            try:
                result = context.wait(period=config.monitor_interval)
            finally:
                context.close()
        assert result is not None
        ranks = {local: int(env["RANK"]) for local, env in environments.items()}
        failures = {ranks[local]: failure for local, failure in result.failures.items()}
        if not failures:
            return {ranks[local]: value for local, value in result.return_values.items()}
    raise ChildFailedError(name, failures)
