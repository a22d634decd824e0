"""Changes of how a tensor lies over processes, through which gradients flow.

The gradient of a tensor that is cut is cut alike; that of one that all have is had by all; that of summands, whose
sum is meant, is had by all as well. So every move has its counterpart in the backward, and what is computed from
a tensor that all have together with one that is cut must sum up its gradient (`summed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda as torch
from taeda.distributed._reductions import RedOpType
from taeda.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

_OPS = {
    "sum": RedOpType.SUM, "avg": RedOpType.AVG, "max": RedOpType.MAX, "min": RedOpType.MIN,
    "product": RedOpType.PRODUCT, "band": RedOpType.BAND, "bor": RedOpType.BOR, "bxor": RedOpType.BXOR,
}  # fmt: skip


def cut(tensor: Any, shard: Shard, count: int, place: int) -> Any:
    """The part of one process."""
    found = [
        tensor.narrow(shard.dim, *piece) for piece in shard.pieces(tensor.shape[shard.dim], count, place)
    ]
    return torch.cat(found, shard.dim) if len(found) > 1 else found[0]


def _gathered(local: Any, shard: Shard, size: int, group: Any) -> Any:
    """All parts, joined; `size` is that of the whole."""
    dim, shape, room = shard.dim, list(local.shape), []
    pieces = [shard.pieces(size, group.size(), place) for place in range(group.size())]
    for found in pieces:
        shape[dim] = sum(length for _, length in found)
        room.append(torch.empty(shape, dtype=local.dtype, device=local.device))
    group.allgather([room], [local.contiguous()], later=False)
    if shard.split_factor > 1:
        placed = []
        for part, found in zip(room, pieces, strict=True):
            lengths = [length for _, length in found]
            placed += zip((start for start, _ in found), part.split(lengths, dim), strict=True)
        room = [piece for _, piece in sorted(placed, key=lambda each: each[0])]
    return torch.cat(room, dim) if len(room) > 1 else room[0]


def _reduced(local: Any, op: str, group: Any) -> Any:
    result = local.clone(memory_format=torch.contiguous_format)
    if result.dtype is torch.bool:
        kind = {"max": "bor", "min": "band", "sum": "bor", "product": "band"}.get(op, op)
        group.allreduce([result], _OPS[kind], later=False)
    elif result.is_complex():
        group.allreduce([torch.view_as_real(result)], _OPS[op], later=False)
    else:
        group.allreduce([result], _OPS[op], later=False)
    return result


class _Gather(torch.autograd.Function):
    """From a part to the whole."""

    @staticmethod
    def forward(ctx: Any, local: Any, shard: Shard, size: int, group: Any) -> Any:
        ctx.shard, ctx.group = shard, group
        return _gathered(local, shard, size, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _Cut.apply(gradient, ctx.shard, ctx.group), None, None, None


class _Cut(torch.autograd.Function):
    """From the whole to a part."""

    @staticmethod
    def forward(ctx: Any, whole: Any, shard: Shard, group: Any) -> Any:
        ctx.shard, ctx.size, ctx.group = shard, whole.shape[shard.dim], group
        return cut(whole, shard, group.size(), group.rank()).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _Gather.apply(gradient, ctx.shard, ctx.size, ctx.group), None, None


class _Reduce(torch.autograd.Function):
    """From summands to the sum, which all have."""

    @staticmethod
    def forward(ctx: Any, local: Any, op: str, group: Any) -> Any:
        ctx.op, ctx.group = op, group
        result = _reduced(local, op, group)
        if op in ("max", "min", "product"):
            ctx.save_for_backward(local, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        if ctx.op == "avg":
            gradient = gradient / ctx.group.size()
        elif ctx.op == "product":
            local, result = ctx.saved_tensors
            gradient = gradient * result / local
        elif ctx.op in ("max", "min"):
            local, result = ctx.saved_tensors
            mine = (local == result).to(gradient.dtype)
            gradient = gradient * mine / _reduced(mine, "sum", ctx.group)
        return gradient, None, None


class _ReduceCut(torch.autograd.Function):
    """From summands to a part of the sum."""

    @staticmethod
    def forward(ctx: Any, local: Any, op: str, shard: Shard, group: Any) -> Any:
        ctx.op, ctx.shard, ctx.size, ctx.group = op, shard, local.shape[shard.dim], group
        parts = [cut(local, shard, group.size(), place).contiguous() for place in range(group.size())]
        result = torch.empty_like(parts[group.rank()])
        group.reduce_scatter([result], [parts], _OPS[op], later=False)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        whole = _Gather.apply(gradient, ctx.shard, ctx.size, ctx.group)
        return whole / ctx.group.size() if ctx.op == "avg" else whole, None, None, None


class _Share(torch.autograd.Function):
    """From what all have to summands of it."""

    @staticmethod
    def forward(ctx: Any, whole: Any, op: str, group: Any) -> Any:
        return whole / group.size() if op == "sum" else whole.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient, None, None


class _Summed(torch.autograd.Function):
    """What all have, used beside something that is cut: its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, whole: Any, group: Any) -> Any:
        ctx.group = group
        return whole.view_as(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _Reduce.apply(gradient, "sum", ctx.group), None


def summed(whole: Any, group: Any) -> Any:
    """A tensor that all have, whose gradients of several processes are to be added."""
    return _Summed.apply(whole, group) if whole.requires_grad and torch.is_grad_enabled() else whole


def local_size(
    shape: Sequence[int], mesh: Any, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Shape of the part of this process, and where it begins."""
    sizes, starts = list(shape), [0] * len(shape)
    place = mesh.get_coordinate() or (0,) * mesh.ndim
    for dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            at = placement.dim
            found = placement.pieces(sizes[at], mesh.shape[dim], place[dim])
            sizes[at] = sum(length for _, length in found)
            starts[at] += found[0][0]
    return sizes, starts


def redistribute(
    local: Any, shape: Sequence[int], mesh: Any, now: Sequence[Placement], wanted: Sequence[Placement]
) -> Any:
    """The part of this process after a change of how the whole, of a shape, lies over the mesh."""
    if mesh.get_coordinate() is None:
        return local
    now = list(now)
    for dim in reversed(range(mesh.ndim)):
        placement = now[dim]
        if isinstance(placement, Shard) and (placement != wanted[dim] or _cut_before(now, wanted, dim)):
            before = local_size(shape, mesh, now[:dim])[0][placement.dim]
            local = _Gather.apply(local, placement, before, mesh.get_group(dim))
            now[dim] = Replicate()
    for dim in range(mesh.ndim):
        placement, target = now[dim], wanted[dim]
        if placement == target:
            continue
        group = mesh.get_group(dim)
        if isinstance(placement, Partial):
            later = isinstance(target, Shard) and any(p.is_shard(target.dim) for p in now[dim + 1 :])
            if isinstance(target, Shard) and not later:
                local = _ReduceCut.apply(local, placement.reduce_op, target, group)
                continue
            local = _Reduce.apply(local, placement.reduce_op, group)
        if isinstance(target, Shard):
            local = _Cut.apply(local, target, group)
        elif isinstance(target, Partial):
            local = _Share.apply(local, target.reduce_op, group)
    return local


def _cut_before(now: Sequence[Placement], wanted: Sequence[Placement], dim: int) -> bool:
    """Whether an earlier cut of the same dimension of the tensor changes: parts of parts must be put together first."""
    mine = now[dim]
    return isinstance(mine, Shard) and any(
        now[i] != wanted[i] and (now[i].is_shard(mine.dim) or wanted[i].is_shard(mine.dim))
        for i in range(dim)
    )
