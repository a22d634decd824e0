"""Checks and measures what the GPUs of a machine do together by NCCL, a process for each of them.

python tools/gpu_check/together.py [--processes N] [--small]

On a machine with one GPU there is one process, whose collectives go through the library all the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import taeda as torch
import taeda.distributed as dist

SMALL = "--small" in sys.argv[1:]
ELEMENTS, REPEATS = (1 << 10, 2) if SMALL else (1 << 24, 20)


def check(device: Any, rank: int, size: int) -> None:
    """Every collective, of small whole numbers that are made by the host."""

    def there(value: Any) -> Any:
        return value.to(device)

    def same(what: str, found: Any, expected: Any) -> None:
        assert torch.equal(found.cpu(), expected), (what, rank, found.cpu(), expected)

    every = [torch.arange(4.0) + each for each in range(size)]
    sums, mine = torch.stack(every).sum(0), there(every[rank])
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        total = there(every[rank].to(dtype))
        dist.all_reduce(total)
        same(f"all_reduce of {dtype}", total, sums.to(dtype))
    for op, expected in ((dist.ReduceOp.AVG, sums / size), (dist.ReduceOp.MAX, every[-1])):
        total = there(every[rank])
        dist.all_reduce(total, op)
        same(f"all_reduce, {op}", total, expected)
    first = there(every[rank])
    dist.broadcast(first, 0)
    same("broadcast", first, every[0])
    total = there(every[rank])
    dist.reduce(total, 0)
    same("reduce", total, sums if rank == 0 else every[rank])
    room = [there(torch.zeros(4)) for _ in range(size)]
    dist.all_gather(room, mine)
    for found, expected in zip(room, every, strict=True):
        same("all_gather", found, expected)
    whole = there(torch.zeros(4 * size))
    dist.all_gather_into_tensor(whole, mine)
    same("all_gather_into_tensor", whole, torch.cat(every))
    part = there(torch.zeros(4))
    dist.reduce_scatter(part, [there(every[rank] + place) for place in range(size)])
    same("reduce_scatter", part, sums + size * rank)
    dist.reduce_scatter_tensor(part, there(torch.cat([every[rank] + place for place in range(size)])))
    same("reduce_scatter_tensor", part, sums + size * rank)
    taken = [there(torch.zeros(4)) for _ in range(size)]
    dist.all_to_all(taken, [there(every[rank] + 10 * place) for place in range(size)])
    for found, expected in zip(taken, every, strict=True):
        same("all_to_all", found, expected + 10 * rank)
    dist.gather(mine, taken if rank == 0 else None)
    for found, expected in zip(taken if rank == 0 else [], every, strict=False):
        same("gather", found, expected)
    dist.scatter(part, [there(each) for each in every] if rank == 0 else None)
    same("scatter", part, every[rank])
    if size > 1:
        pass_round(mine, part, rank, size)
        same("send and recv", part, every[(rank - 1) % size])


def pass_round(mine: Any, found: Any, rank: int, size: int) -> None:
    """Each process sends to the next one."""
    moves = [
        dist.P2POp(dist.isend, mine, (rank + 1) % size),
        dist.P2POp(dist.irecv, found, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(moves):
        work.wait()


def measured(device: Any, call: Callable[[Any], Any]) -> float:
    """Milliseconds of one call on a large tensor."""
    tensor = torch.zeros(ELEMENTS, device=device)
    call(tensor)
    torch.cuda.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(REPEATS):
        call(tensor)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / REPEATS * 1e3


def member() -> None:
    """One of the processes."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(seconds=120))
    rank, size = dist.get_rank(), dist.get_world_size()
    assert not (why := torch.cuda.nccl.unavailable_reason()), why
    check(device, rank, size)
    for name, call in (("all_reduce", dist.all_reduce), ("broadcast", lambda t: dist.broadcast(t, 0))):
        took = measured(device, call)
        if rank == 0:
            print(f"{name} of {ELEMENTS * 4 / 2**20:g} MiB, {size} devices: {took:.2f} ms", flush=True)
    if rank == 0:
        print(f"NCCL {torch.cuda.nccl.version()}: every collective is right")
    dist.destroy_process_group()


def main() -> int:
    """Starts a process for each GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="sizes that show that everything runs")
    parser.add_argument("--member", action="store_true", help="as one of the processes")
    options = parser.parse_args()
    if options.member:
        member()
        return 0
    count = options.processes or torch.cuda.device_count()
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    command += [str(Path(__file__)), "--member", *(["--small"] if SMALL else [])]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
