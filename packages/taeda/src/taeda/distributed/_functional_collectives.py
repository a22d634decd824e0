"""What processes do together, as functions that return new tensors; each waits for its end."""

from __future__ import annotations

from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda import _absent
from taeda.distributed import ReduceOp
from taeda.distributed.nn import functional as _differentiable

AsyncCollectiveTensor = _absent.cls(
    "taeda.distributed._functional_collectives.AsyncCollectiveTensor",
    "results are there when a function returns",
)


def _op(name: Any) -> Any:
    return name if isinstance(name, ReduceOp.RedOpType) else ReduceOp.RedOpType[str(name).upper()]


def wait_tensor(tensor: Any) -> Any:
    """The tensor itself, which is complete."""
    return tensor


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """The tensor of one process, `src` of the group."""
    return _differentiable.broadcast(self, dist.get_global_rank(group, src), group)


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """The combination of the tensors of all processes."""
    return _differentiable.all_reduce(self, _op(reduceOp), group)


def all_gather_tensor(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """The tensors of all processes, joined along a dimension."""
    return torch.cat(_differentiable.all_gather(self, group), gather_dim)


def reduce_scatter_tensor(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:
    """This process's part, along a dimension, of the combination of the tensors of all."""
    size = dist.get_world_size(group)
    if self.size(scatter_dim) % size:
        raise ValueError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of group_size {size}"
        )
    parts = self.chunk(size, scatter_dim)
    return _differentiable.reduce_scatter(parts[0], parts, _op(reduceOp), group)


def all_to_all_single(
    self: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Any:
    """A part of the tensor of each process, joined along the first dimension."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    room = self.new_empty((rows, *self.shape[1:]))
    return _differentiable.all_to_all_single(room, self, output_split_sizes, input_split_sizes, group)


all_to_all_single_autograd = all_to_all_single
