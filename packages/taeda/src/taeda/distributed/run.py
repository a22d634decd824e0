"""Starts a script in several processes, and says to each which it is: PyTorch's `torchrun`.

    python -m taeda.distributed.run --nproc-per-node=2 script.py ARGUMENTS

Each process finds RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
`init_process_group` reads. When one fails, the others are ended.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from taeda.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from taeda.distributed.elastic.multiprocessing.errors import record
from taeda.distributed.elastic.utils import macros
from taeda.distributed.launcher import LaunchConfig, elastic_launch


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
    option("monitor-interval", type=float, default=0.1, help="seconds between two looks at the processes")
    option("start-method", default="spawn", help="accepted")
    option("log-dir", default=None, help="a folder for output that is redirected")
    parser.add_argument("-r", "--redirects", default="0", help="3 writes output of the processes to files")
    parser.add_argument("-t", "--tee", default="0", help="3 writes output to files and shows it")
    option("local-ranks-filter", default="", help="the processes that show output, as 0,1; all by default")
    option("role", default="default", help="accepted")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    option("no-python", action="store_true", help="the script is a program")
    option("run-path", action="store_true", help="run the script with runpy in processes of a function")
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


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The smallest and the largest number of machines: "2" or "1:4".

    Raises:
        RuntimeError: It is neither.
    """
    parts = str(nnodes).split(":")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def get_use_env(args: argparse.Namespace) -> bool:
    """Whether scripts read their number in the environment only."""
    return bool(getattr(args, "use_env", True))


def get_rdzv_endpoint(args: argparse.Namespace) -> str:
    """Where the processes meet, as "HOST:PORT"."""
    if args.standalone:
        return "localhost:0"
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return f"{args.master_addr}:{args.master_port}"
    return str(args.rdzv_endpoint)


def config_from_args(
    args: argparse.Namespace,
) -> tuple[LaunchConfig, Callable[..., Any] | str, list[str]]:
    """What the options say: how processes are started, the program, and its arguments."""
    smallest, largest = parse_min_max_nnodes(args.nnodes)
    if args.standalone:
        smallest = largest = 1
    logs = DefaultLogsSpecs(
        log_dir=args.log_dir,
        redirects=Std.from_str(args.redirects or "0"),
        tee=Std.from_str(args.tee or "0"),
        local_ranks_filter={int(rank) for rank in args.local_ranks_filter.split(",") if rank} or None,
    )
    config = LaunchConfig(
        min_nodes=smallest,
        max_nodes=largest,
        nproc_per_node=determine_local_world_size(str(args.nproc_per_node)),
        logs_specs=logs,
        run_id=args.rdzv_id,
        role=args.role,
        rdzv_endpoint=get_rdzv_endpoint(args),
        rdzv_backend="c10d" if args.standalone else args.rdzv_backend,
        rdzv_configs={"rank": args.node_rank},
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
    )
    own = [f"--local-rank={macros.local_rank}"] if getattr(args, "pass_local_rank", False) else []
    if args.run_path:
        return config, run_script_path, [args.training_script, *own, *args.training_script_args]
    start = [] if args.no_python else ["-u", *(["-m"] if args.module else [])]
    program = args.training_script if args.no_python else os.getenv("PYTHON_EXEC", sys.executable)
    script = [] if args.no_python else [args.training_script]
    return config, program, [*start, *script, *own, *args.training_script_args]


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Run a script in this process, as if it had been started with these arguments."""
    import runpy

    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def run(args: argparse.Namespace) -> None:
    """Starts the processes and waits for them.

    Raises:
        ChildFailedError: One failed.
    """
    config, program, given = config_from_args(args)
    elastic_launch(config, program)(*given)


@record
def main(args: Sequence[str] | None = None) -> None:
    """The command line."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
