"""What several processes find together on one library; test_distributed_parity.py compares the two.

    python distributed_worker.py torch|taeda PROCESSES FILE

With taeda, taeda stands under the name torch. Process R writes what it found to FILE.LIBRARY.R.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import zoo_worker
from libraries_worker import plain

torch = zoo_worker.library(sys.argv[1])
import torch.distributed as dist  # noqa: E402
import torch.distributed.nn.functional as differentiable  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


def numbers(rank: int, *shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(7 * rank + sum(shape)).standard_normal(shape))


def room(*shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.float64)


class Halves(nn.Module):
    """A network of which a call uses one of two ends."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.ends, self.spare = nn.ModuleList([nn.Linear(8, 3) for _ in range(2)]), nn.Linear(1, 1)

    def forward(self, x: Any, end: int) -> dict[str, Any]:
        return {"out": self.ends[end](self.norm(self.start(x)))}


def collectives(rank: int, size: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        value = torch.tensor([rank + 5, rank * 3]) if op[0] == "B" else numbers(rank, 5)
        dist.all_reduce(value, op=getattr(dist.ReduceOp, op))
        found[op] = value
    dist.broadcast(value := numbers(rank, 3), 1)
    found["broadcast"] = value
    dist.reduce(value := numbers(rank, 3), 0)
    found["reduce"] = value if rank == 0 else None
    dist.all_gather(parts := [room(2, 3) for _ in range(size)], numbers(rank, 2, 3))
    dist.all_gather_into_tensor(whole := room(2 * size, 3), numbers(rank, 2, 3))
    found |= {"all_gather": parts, "all_gather_into_tensor": whole}
    dist.gather(numbers(rank, 3), parts := [room(3) for _ in range(size)] if rank == 0 else None, 0)
    dist.scatter(part := room(3), [numbers(9 + i, 3) for i in range(size)] if rank == 1 else None, 1)
    found |= {"gather": parts, "scatter": part}
    dist.reduce_scatter(part := room(3), [numbers(rank + i, 3) for i in range(size)])
    dist.reduce_scatter_tensor(half := room(2), numbers(rank, 2 * size))
    dist.all_to_all_single(swapped := room(size, 2), numbers(rank, size, 2))
    found |= {"reduce_scatter": part, "reduce_scatter_tensor": half, "all_to_all_single": swapped}
    if rank == 0:
        dist.send(numbers(3, 4), 1)
    if rank == 1:
        found["from"] = dist.recv(value := room(4))
        found["received"] = value
    work = dist.all_reduce(numbers(rank, 3), async_op=True)
    found["work"] = [work.wait(), work.is_completed()]
    operations = [
        dist.P2POp(dist.isend, numbers(rank, 2), (rank + 1) % size),
        dist.P2POp(dist.irecv, value := room(2), (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    found["ring"] = value
    given = [None] * 2 if rank else ["x", {"a": 1}]
    dist.broadcast_object_list(given, 0)
    mine = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(size)] if rank == 0 else None, 0)
    sampler = torch.utils.data.DistributedSampler(range(7), shuffle=False)
    return found | {"objects": [*given, *mine], "sampler": list(sampler)}


def gradients(rank: int, size: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    joined = torch.cat(differentiable.all_gather(x := numbers(rank, 2, 2).requires_grad_()))
    weights = torch.arange(1.0, joined.numel() + 1).view_as(joined)
    (joined * joined * weights * (rank + 1)).sum().backward()
    found["all_gather"] = x.grad
    differentiable.all_reduce(x := numbers(rank, 3).requires_grad_()).pow(2).sum().backward()
    found["all_reduce"] = x.grad
    return found


def training(rank: int, size: int) -> dict[str, Any]:
    network = Halves().double()
    zoo_worker.fill(torch, network)
    shared = DistributedDataParallel(network, find_unused_parameters=True)
    optimizer = torch.optim.SGD(shared.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        with shared.no_sync():
            shared(numbers(rank + step, 5, 4), 1)["out"].pow(2).mean().backward()
        loss = shared(numbers(rank + step + 3, 5, 4), int(rank == 0))["out"].pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {
        "losses": losses, "parameters": list(network.parameters()), "buffers": list(network.buffers()),
        "gradients": [p.grad for p in network.parameters()], "keys": list(shared.state_dict()),
    }  # fmt: skip


def process(rank: int, size: int, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    found = {part.__name__: part(rank, size) for part in (collectives, gradients, training)}
    dist.barrier()
    dist.destroy_process_group()
    Path(f"{file}.{sys.argv[1]}.{rank}").write_bytes(pickle.dumps(plain(torch, found)))


if __name__ == "__main__":
    import torch.multiprocessing as processes

    processes.spawn(process, (int(sys.argv[2]), sys.argv[3]), nprocs=int(sys.argv[2]))
