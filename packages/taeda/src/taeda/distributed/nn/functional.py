"""Operations of several processes through which gradients flow: each backward is an operation of all of them too."""

from __future__ import annotations

from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed import ReduceOp

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _rank(group: Any) -> int:
    return int(dist.get_rank(group))


def _size(group: Any) -> int:
    return int(dist.get_world_size(group))


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The tensor of one process, in all; its gradient is the sum of theirs."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Any:
    """The tensors of all processes in one, zeros in the others: a tuple."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Any, src: int = 0, group: Any = None) -> Any:
    """Of a list of one process the tensor at this process's place; lists of others only say shapes."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The combination of the tensors of all processes in one, each one's own in the others."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The combination of the lists of all processes, at this process's place."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Any, group: Any = None) -> Any:
    """The tensors of all processes, a tuple.

    Example:
        >>> features = taeda.cat(all_gather(mine))  # doctest: +SKIP
    """
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None) -> Any:
    """One tensor of each process, a tuple; `output_tensor_list` says shapes."""
    return _AllToAll.apply(group, tuple(output_tensor_list), *input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """A part of the tensor of each process, joined; `output` says the shape."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The combination of the tensors of all processes, in all."""
    return _AllReduce.apply(op, group, tensor)


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        dist.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, gradient)
        mine = dist.get_rank() == ctx.src
        return None, None, total if mine else torch.zeros_like(total)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        found = [torch.zeros_like(tensor) for _ in range(_size(group))]
        dist.gather(tensor.contiguous(), found if dist.get_rank() == dst else None, dst, group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        ctx.src, ctx.group = src, group
        result = torch.zeros_like(tensors[_rank(group)])
        given = [item.contiguous() for item in tensors] if dist.get_rank() == src else None
        dist.scatter(result, given, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, gradient))


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        result = tensor.detach().clone()
        dist.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, gradient)


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *tensors: Any) -> Any:
        ctx.group = group
        result = torch.zeros_like(output)
        dist.reduce_scatter(result, [item.contiguous() for item in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, gradient))


class _AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        found = [torch.zeros_like(tensor) for _ in range(_size(group))]
        dist.all_gather(found, tensor.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        mine = gradients[_rank(ctx.group)]
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, mine, *gradients)


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Any, *tensors: Any) -> Any:
        ctx.group, ctx.shapes = group, [(tuple(item.shape), item.dtype) for item in tensors]
        found = [torch.zeros_like(item) for item in outputs]
        dist.all_to_all(found, [item.contiguous() for item in tensors], group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        room = tuple(torch.empty(shape, dtype=dtype) for shape, dtype in ctx.shapes)
        return (None, None, *_AllToAll.apply(ctx.group, room, *gradients))


class _AllToAllSingle(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, taken: Any, given: Any, tensor: Any) -> Any:
        ctx.group, ctx.taken, ctx.given, ctx.shape = group, taken, given, tuple(tensor.shape)
        result = torch.zeros_like(output)
        dist.all_to_all_single(result, tensor.contiguous(), taken, given, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        room = torch.empty(ctx.shape, dtype=gradient.dtype)
        result = _AllToAllSingle.apply(ctx.group, room, ctx.given, ctx.taken, gradient)
        return None, None, None, None, result


class _AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone()
        dist.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, gradient)
