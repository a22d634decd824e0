"""Starts a script in several processes, and says to each which it is: PyTorch's `torchrun`.

    python -m taeda.distributed.run --nproc-per-node=2 script.py ARGUMENTS

Each process finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
`init_process_group` reads. When one fails, the others are ended.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

# Between two looks at the processes, and until one that was told to end is ended.
_PAUSE, _GRACE = 0.05, 10.0


def get_args_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m taeda.distributed.run", description="Starts a script in several processes."
    )

    def option(name: str, **settings: Any) -> None:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", **settings)

    option("nproc-per-node", default="1", help="processes on this machine: a number, auto, cpu or gpu")
    option("nnodes", default="1", help="machines")
    option("node-rank", type=int, default=0, help="which machine this is")
    option("master-addr", default="127.0.0.1", help="the first machine")
    option("master-port", type=int, default=29500, help="a free port of the first machine")
    parser.add_argument("--standalone", action="store_true", help="one machine and any free port")
    option("rdzv-backend", default="static", help="accepted")
    option("rdzv-endpoint", default="", help="HOST:PORT in the place of master-addr and master-port")
    option("rdzv-id", default="none", help="a name of the job")
    option("rdzv-conf", default="", help="accepted")
    option("max-restarts", type=int, default=0, help="how often all are started again when one fails")
    option("monitor-interval", type=float, default=0.1, help="accepted")
    option("start-method", default="spawn", help="accepted")
    option("log-dir", default=None, help="a folder for output that is redirected")
    parser.add_argument("-r", "--redirects", default="0", help="3 writes output of the processes to files")
    parser.add_argument("-t", "--tee", default="0", help="accepted")
    option("local-ranks-filter", default="", help="accepted")
    option("role", default="default", help="accepted")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    option("no-python", action="store_true", help="the script is a program")
    option("run-path", action="store_true", help="accepted")
    option("use-env", action="store_true", help="accepted")
    parser.add_argument("training_script", help="the script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many processes a machine gets.

    Raises:
        ValueError: Neither a number nor auto, cpu or gpu.
    """
    if nproc_per_node.isdigit():
        return int(nproc_per_node)
    import taeda as torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if nproc_per_node == "gpu" and not gpus:
        raise ValueError("Cuda is not available.")
    if nproc_per_node not in ("auto", "cpu", "gpu"):
        raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")
    return gpus if gpus and nproc_per_node != "cpu" else os.cpu_count() or 1


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def _environments(args: argparse.Namespace) -> list[dict[str, str]]:
    """What each process of this machine finds in its environment."""
    here = determine_local_world_size(args.nproc_per_node)
    nodes = int(str(args.nnodes).partition(":")[0])
    host, port = args.master_addr, args.master_port
    if args.standalone:
        nodes, host, port = 1, "127.0.0.1", _free_port()
    elif args.rdzv_endpoint:
        host, _, given = args.rdzv_endpoint.partition(":")
        port = int(given or 29400)
        port = port or _free_port()
    shared = {
        "WORLD_SIZE": str(here * nodes), "LOCAL_WORLD_SIZE": str(here), "GROUP_RANK": str(args.node_rank),
        "GROUP_WORLD_SIZE": str(nodes), "ROLE_NAME": args.role, "ROLE_WORLD_SIZE": str(here * nodes),
        "MASTER_ADDR": host, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts), "TORCHELASTIC_USE_AGENT_STORE": "False",
    }  # fmt: skip
    if here > 1 and "OMP_NUM_THREADS" not in os.environ:
        shared["OMP_NUM_THREADS"] = "1"
    ranks = [args.node_rank * here + local for local in range(here)]
    return [
        {**shared, "RANK": str(rank), "ROLE_RANK": str(rank), "LOCAL_RANK": str(local)}
        for local, rank in enumerate(ranks)
    ]


def _command(args: argparse.Namespace, local_rank: str) -> list[str]:
    start = [] if args.no_python else [sys.executable, "-u", *(["-m"] if args.module else [])]
    own = [f"--local-rank={local_rank}"] if getattr(args, "pass_local_rank", False) else []
    return [*start, args.training_script, *own, *args.training_script_args]


def _start(args: argparse.Namespace, restart: int) -> list[subprocess.Popen[bytes]]:
    started = []
    for own in _environments(args):
        environment = {**os.environ, **own, "TORCHELASTIC_RESTART_COUNT": str(restart)}
        out: Any = None
        if args.log_dir and args.redirects not in ("0", ""):
            folder = os.path.join(
                args.log_dir, own["TORCHELASTIC_RUN_ID"], f"attempt_{restart}", own["LOCAL_RANK"]
            )
            os.makedirs(folder, exist_ok=True)
            out = open(os.path.join(folder, "stdout.log"), "wb")  # noqa: SIM115  (closed below)
        error = subprocess.STDOUT if out else None
        started.append(
            subprocess.Popen(_command(args, own["LOCAL_RANK"]), env=environment, stdout=out, stderr=error)
        )
        if out:
            out.close()
    return started


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the processes that still run."""
    for process in started:
        if process.poll() is None:
            process.terminate()
    limit = time.monotonic() + _GRACE
    for process in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - time.monotonic()))
        if process.poll() is None:
            process.kill()
            process.wait()


def _watch(started: Sequence[subprocess.Popen[bytes]]) -> tuple[int, int] | None:
    """Wait for all; the first that failed, and its status."""
    try:
        while True:
            states = [process.poll() for process in started]
            for rank, state in enumerate(states):
                if state not in (None, 0):
                    return rank, int(state or 0)
            if all(state == 0 for state in states):
                return None
            time.sleep(_PAUSE)
    finally:
        _end(started)


def run(args: argparse.Namespace) -> None:
    """Starts the processes and waits for them.

    Raises:
        ChildFailedError: One failed.
    """
    from taeda.distributed.elastic.multiprocessing.errors import ChildFailedError

    failed = None
    for restart in range(args.max_restarts + 1):
        failed = _watch(_start(args, restart))
        if failed is None:
            return
    assert failed is not None
    rank, status = failed
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
    raise ChildFailedError(f"{args.training_script} FAILED: local rank {rank} ended with {how}")


def main(args: Sequence[str] | None = None) -> None:
    """The command line."""
    run(get_args_parser().parse_args(args))


if __name__ == "__main__":
    main()
