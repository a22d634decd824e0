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


def _chosen(group: Any) -> Any:
    """The group that is meant: one itself, its name, ranks, rows of ranks, a mesh of one dimension, or a mesh and a
    dimension of it.
    """
    from taeda.distributed._world import groups
    from taeda.distributed.device_mesh import DeviceMesh

    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError(
                f"Only 1D mesh is supported, pass in (DeviceMesh, int) together; found {group}"
            )
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, str):
        if group not in groups.named:
            raise ValueError(f"there is no group named {group!r}; there are {', '.join(groups.named)}")
        return groups.named[group]
    if isinstance(group, (list, tuple)):
        rows = group if group and isinstance(group[0], (list, tuple)) else [group]
        ranks = next((tuple(row) for row in rows if dist.get_rank() in row), tuple(rows[0]))
        for known in groups.named.values():
            if known._ranks == ranks:
                return known
        raise ValueError(f"there is no group of the processes {list(ranks)}: make it with new_group first")
    return group


def _is_meta(tensor: Any) -> bool:
    """Whether nothing is to be exchanged: the result has a shape alone."""
    return bool(tensor.device.type == "meta")


def wait_tensor(tensor: Any) -> Any:
    """The tensor itself, which is complete."""
    return tensor


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """The tensor of one process, `src` of the group."""
    group = _chosen(group)
    if _is_meta(self):
        return torch.empty_like(self)
    return _differentiable.broadcast(self, dist.get_global_rank(group, src), group)


def all_reduce(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """The combination of the tensors of all processes."""
    group = _chosen(group)
    if _is_meta(self):
        return torch.empty_like(self)
    return _differentiable.all_reduce(self, _op(reduceOp), group)


def all_gather_tensor(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """The tensors of all processes, joined along a dimension."""
    group = _chosen(group)
    if _is_meta(self):
        return torch.cat([self] * dist.get_world_size(group), gather_dim)
    return torch.cat(_differentiable.all_gather(self, group), gather_dim)


def reduce_scatter_tensor(self: Any, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Any:
    """This process's part, along a dimension, of the combination of the tensors of all."""
    group = _chosen(group)
    size = dist.get_world_size(group)
    if self.size(scatter_dim) % size:
        raise ValueError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)}) must be a multiple of group_size {size}"
        )
    parts = self.chunk(size, scatter_dim)
    if _is_meta(self):
        return torch.empty_like(parts[0])
    return _differentiable.reduce_scatter(parts[0], parts, _op(reduceOp), group)


def all_to_all_single(
    self: Any, output_split_sizes: Any, input_split_sizes: Any, group: Any, tag: str = ""
) -> Any:
    """A part of the tensor of each process, joined along the first dimension."""
    group = _chosen(group)
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    room = self.new_empty((rows, *self.shape[1:]))
    if _is_meta(self):
        return room
    return _differentiable.all_to_all_single(room, self, output_split_sizes, input_split_sizes, group)


all_to_all_single_autograd = all_to_all_single
all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor


def all_gather_single(self: Any, group: Any, tag: str = "", *, out: Any = None) -> Any:
    """The tensors of all processes, joined along the first dimension."""
    made = all_gather_tensor(self, 0, group, tag)
    return made if out is None else out.copy_(made)


def reduce_scatter_single(self: Any, reduceOp: str, group: Any, tag: str = "") -> Any:
    """This process's part, along the first dimension, of the combination of the tensors of all."""
    return reduce_scatter_tensor(self, reduceOp, 0, group, tag)


all_gather_single_autograd = all_gather_single
reduce_scatter_single_autograd = reduce_scatter_single


def all_reduce_coalesced(self: list[Any], reduceOp: str, group: Any, tag: str = "") -> list[Any]:
    """`all_reduce` of several tensors."""
    return [all_reduce(item, reduceOp, group, tag) for item in self]


def all_gather_into_tensor_coalesced(self: list[Any], group: Any, tag: str = "") -> list[Any]:
    """`all_gather_single` of several tensors."""
    return [all_gather_single(item, group, tag) for item in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[Any], reduceOp: str, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Any]:
    """`reduce_scatter_tensor` of several tensors, each along its dimension."""
    return [
        reduce_scatter_tensor(item, reduceOp, dim, group, tag)
        for item, dim in zip(inputs, scatter_dim, strict=True)
    ]


def permute_tensor(self: Any, src_dst: list[int], group: Any, tag: str = "") -> Any:
    """The tensor of another process: that of process i goes to process `src_dst[i]` of the group.

    Raises:
        ValueError: `src_dst` does not name each process once.
    """
    group = _chosen(group)
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    if sorted(src_dst) != list(range(size)):
        raise ValueError(f"permute_tensor: 'src_dst' is {src_dst}, expected each of {size} processes once")
    leaving, coming = [0] * size, [0] * size
    leaving[src_dst[rank]] = coming[src_dst.index(rank)] = self.numel()
    return all_to_all_single(self.flatten(), coming, leaving, group, tag).reshape(self.shape)
