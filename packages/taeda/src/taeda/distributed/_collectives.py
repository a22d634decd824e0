"""What the processes of a group do together with tensors: the functions that programs call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import taeda as torch
from taeda.distributed._group import ProcessGroup
from taeda.distributed._reductions import RedOpType, ReduceOp, supports_complex
from taeda.distributed._work import Work
from taeda.distributed._world import (
    chosen,
    default_group,
    get_group_rank,
    warn_not_in_group,
)


def _one(value: Any, name: str) -> None:
    if not isinstance(value, torch.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _several(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(item, torch.Tensor) for item in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )


def _same_dtype(*values: Any) -> None:
    found = {
        item.dtype for value in values for item in (value if isinstance(value, (list, tuple)) else [value])
    }
    if len(found) > 1:
        raise ValueError(
            f"Invalid usage of tensors with different dtypesFound {', '.join(sorted(map(str, found)))}"
        )


def _count(values: Sequence[Any], group: ProcessGroup, name: str) -> None:
    if len(values) != group.size():
        raise ValueError(
            f"argument '{name}' has {len(values)} tensors, expected one for each of {group.size()} processes"
        )


def _real(value: Any, op: RedOpType | None, name: str) -> Any:
    """The tensor, complex numbers as pairs of real ones."""
    if not value.is_complex():
        return value
    if op is not None and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    return torch.view_as_real(value.detach())


def _place(
    group: ProcessGroup, rank: int | None, group_rank: int | None, default: int | None, name: str
) -> int:
    """The number in the group of a process that programs name by either number.

    Raises:
        ValueError: Both, neither, or a process that is not in the group.
    """
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(
                f"argument 'group_{name}' is {group_rank}, the group has {group.size()} processes"
            )
        return group_rank
    if rank is None:
        rank = default
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return get_group_rank(group, rank)


def _ended(work: Work, later: bool) -> Work | None:
    return work if later else None


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combines the tensors of all processes elementwise; each gets the result in place.

    Args:
        tensor: Of the same shape and dtype in all processes.
        op: How values are combined, a `ReduceOp`.
        group: The processes; None for all.
        async_op: Return at once; the tensor changes until the returned `Work` has ended.

    Returns: `Work` if `async_op`, else None; None too in processes that are not in the group.

    Raises:
        TypeError: No tensor. ValueError: No group, or a reduction that complex numbers do not have.
        DistBackendError: Another process has gone, or does not come in time. RuntimeError: One calls something else.

    Example:
        >>> tensor = taeda.tensor([float(taeda.distributed.get_rank() + 1)])  # doctest: +SKIP
        >>> taeda.distributed.all_reduce(tensor)  # of two processes; both have 3 now
    """
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_reduce")
    return _ended(found.allreduce([_real(tensor, op, "all_reduce")], op, async_op), async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of each of several tensors."""
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    _several(tensors, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_reduce_coalesced")
    return _ended(
        found.allreduce([_real(t, op, "all_reduce_coalesced") for t in tensors], op, async_op), async_op
    )


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Combines the tensors of all processes elementwise; one of them, `dst`, gets the result in place.

    Args:
        dst, group_dst: Its number in the job, or in the group.
        tensor, op, group, async_op: As in `all_reduce`.
    """
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("reduce")
    place = _place(found, dst, group_dst, None, "dst")
    return _ended(found.reduce([_real(tensor, op, "reduce")], place, op, async_op), async_op)


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives the tensor of one process, `src`, to all others, in place.

    Args:
        src, group_src: Its number in the job, or in the group.
        tensor, group, async_op: As in `all_reduce`.
    """
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("broadcast")
    place = _place(found, src, group_src, None, "src")
    return _ended(found.broadcast([tensor], place, async_op), async_op)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Gives the tensors of all processes to all.

    Args:
        tensor_list: A tensor for each process, which is written; their shapes may differ between processes.
        tensor: What this process gives.
        group, async_op: As in `all_reduce`.
    """
    _several(tensor_list, "tensor_list")
    _one(tensor, "tensor")
    _same_dtype(tensor_list, tensor)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_gather")
    _count(tensor_list, found, "tensor_list")
    return _ended(found.allgather([list(tensor_list)], [tensor], async_op), async_op)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` of each of several tensors: ``output_tensor_lists[i]`` gets ``input_tensor_list[i]`` of all."""
    _several(input_tensor_list, "tensor_list")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_gather_coalesced")
    for outputs in output_tensor_lists:
        _several(outputs, "output_tensor_lists")
        _count(outputs, found, "output_tensor_lists")
    return _ended(found.allgather(output_tensor_lists, input_tensor_list, async_op), async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gives the tensors of all processes to all, parts of one tensor: joined, or stacked, along its first dimension."""
    _one(input_tensor, "input_tensor")
    _one(output_tensor, "output_tensor")
    _same_dtype(output_tensor, input_tensor)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_gather_into_tensor")
    return _ended(
        found.allgather([_parts(output_tensor, found, "output_tensor")], [input_tensor], async_op), async_op
    )


def _parts(value: Any, group: ProcessGroup, name: str) -> list[Any]:
    """Equal parts of the memory of a tensor, one for each process."""
    size = group.size()
    if value.numel() % size or not value.is_contiguous():
        raise ValueError(
            f"argument '{name}' of shape {tuple(value.shape)} must be contiguous, of a size that {size} divides"
        )
    each = value.numel() // size
    return list(value.detach().view(-1).split(each)) if each else [value.detach().view(-1)] * size


def gather(
    tensor: Any, gather_list: Any = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Gives the tensors of all processes to one, `dst`.

    Args:
        tensor: What this process gives.
        gather_list: In that process a tensor for each process, which is written; None in others.
        dst, group_dst: Its number in the job, 0 unless given, or in the group.
        group, async_op: As in `all_reduce`.
    """
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("gather")
    place = _place(found, dst, group_dst, 0, "dst")
    if found.rank() == place:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _several(gather_list, "gather_list")
        _same_dtype(tensor, gather_list)
        _count(gather_list, found, "gather_list")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _ended(found.gather([gather_list or []], [tensor], place, async_op), async_op)


def scatter(
    tensor: Any, scatter_list: Any = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Gives each process one of the tensors of one, `src`.

    Args:
        tensor: What is written.
        scatter_list: In that process a tensor for each process; None in others.
        src, group_src: Its number in the job, 0 unless given, or in the group.
        group, async_op: As in `all_reduce`.
    """
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("scatter")
    place = _place(found, src, group_src, 0, "src")
    if found.rank() == place:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _several(scatter_list, "scatter_list")
        _same_dtype(tensor, scatter_list)
        _count(scatter_list, found, "scatter_list")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _ended(found.scatter([tensor], [scatter_list or []], place, async_op), async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines lists of tensors of all processes; each gets the tensor at its place.

    Args:
        output: What is written.
        input_list: A tensor for each process.
        op, group, async_op: As in `all_reduce`.
    """
    _one(output, "output")
    _several(input_list, "input_list")
    _same_dtype(output, input_list)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("reduce_scatter")
    _count(input_list, found, "input_list")
    return _ended(found.reduce_scatter([output], [input_list], op, async_op), async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines the tensors of all processes; each gets its part of the result, along the first dimension."""
    _one(output, "output")
    _one(input, "input")
    _same_dtype(output, input)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("reduce_scatter_tensor")
    parts = [part.view(tuple(output.shape)) for part in _parts(input, found, "input")]
    return _ended(found.reduce_scatter([output], [parts], op, async_op), async_op)


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gives every process one tensor of each.

    Args:
        output_tensor_list: What is written, a tensor for each process.
        input_tensor_list: What this process gives to each.
        group, async_op: As in `all_reduce`.
    """
    _several(output_tensor_list, "output_tensor_list")
    _several(input_tensor_list, "input_tensor_list")
    _same_dtype(output_tensor_list, input_tensor_list)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_to_all")
    _count(output_tensor_list, found, "output_tensor_list")
    _count(input_tensor_list, found, "input_tensor_list")
    return _ended(found.alltoall(output_tensor_list, input_tensor_list, async_op), async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Cuts a tensor along its first dimension, gives a part to each process, and joins what came from each.

    Args:
        output: What is written; contiguous.
        input: What this process gives.
        output_split_sizes, input_split_sizes: Lengths of the parts; None for equal ones.
        group, async_op: As in `all_reduce`.

    Raises:
        ValueError: Lengths that do not sum to the tensor's, or a tensor that cannot be cut equally.
    """
    _one(output, "output")
    _one(input, "input")
    _same_dtype(output, input)
    found = chosen(group)
    if found is None:
        return warn_not_in_group("all_to_all_single")
    outputs = _cut(output, output_split_sizes, found, "output")
    inputs = _cut(input, input_split_sizes, found, "input")
    return _ended(found.alltoall(outputs, inputs, async_op), async_op)


def _cut(value: Any, sizes: Any, group: ProcessGroup, name: str) -> list[Any]:
    length = value.shape[0] if value.dim() else 0
    if not sizes:
        if length % group.size():
            raise ValueError(
                f"all_to_all_single: {group.size()} processes do not divide {length} rows of '{name}'"
            )
        sizes = [length // group.size()] * group.size()
    if len(sizes) != group.size() or sum(sizes) != length:
        raise ValueError(
            f"all_to_all_single: '{name}_split_sizes' is {list(sizes)}, expected {group.size()} numbers that sum to "
            f"{length}"
        )
    return list(value.detach().split(list(sizes)))


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Waits until all processes of a group have come here."""
    found = chosen(group)
    if found is None:
        return warn_not_in_group("barrier")
    return _ended(found.barrier(later=async_op), async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier` with a limit of its own.

    Raises:
        DistBackendError: A process does not come in time; the text says which.
    """
    found = chosen(group)
    if found is None:
        return warn_not_in_group("monitored_barrier")
    before = found._seconds
    try:
        if timeout is not None:
            found.set_timeout(timeout)
        found.barrier(later=False)
    finally:
        found._seconds = before


# From one process to another


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Sends a tensor to one process, which need not have asked for it yet.

    Args:
        dst, group_dst: Its number in the job, or in the group.
        tag: What `recv` must ask for.

    Raises:
        ValueError: This process itself, or a negative tag.
    """
    isend(tensor, dst, group, tag, group_dst)


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """`send`, as `Work` that has ended."""
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("isend")
    place = _place(found, dst, group_dst, None, "dst")
    if place == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    return found.send([tensor], place, _tag(tag))


def _tag(tag: int) -> int:
    if not 0 <= tag < 2**62:
        raise ValueError(f"argument 'tag' is {tag}, expected a number from 0")
    return tag


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Waits for a tensor of one process, or of any, and writes it; the number of the sender in the job, or -1.

    Args:
        src, group_src: The sender by its number in the job, or in the group; neither for any.
    """
    found = chosen(group)
    if found is None:
        warn_not_in_group("recv")
        return -1
    work = irecv(tensor, src, group, tag, group_src)
    assert work is not None
    work.wait()
    return found._ranks[work.source_rank()]


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """`recv` that does not wait: the tensor is written when the returned `Work` is waited for."""
    _one(tensor, "tensor")
    found = chosen(group)
    if found is None:
        return warn_not_in_group("irecv")
    if src is None and group_src is None:
        return found.recv([tensor], None, _tag(tag))
    return found.recv([tensor], _place(found, src, group_src, None, "src"), _tag(tag))


class P2POp:
    """One `isend` or `irecv`, for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: What is sent or written.
        peer, group_peer: The other process by its number in the job, or in the group.
        group, tag: As in `send`.
    """

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _one(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        found = default_group() if group is None else group
        self.group_peer = _place(found, peer, group_peer, None, "peer")
        self.peer = found._ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begins several; the `Work` of each."""
    if not isinstance(p2p_op_list, (list, tuple)) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
        )
    group = p2p_op_list[0].group if p2p_op_list else None
    together = getattr(chosen(group), "batch", None) if p2p_op_list else None
    # Of devices they begin together, since the first would wait for the second.
    if together and all(op.group is group and op.tensor.device.type == "cuda" for op in p2p_op_list):
        return [
            together([("send" if op.op is isend else "recv", op.tensor, op.group_peer) for op in p2p_op_list])
        ]
    begun = [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]
    return [work for work in begun if work is not None]


# Names of before, which programs use.


def _deprecated(new: Callable[..., Any], old: str) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`torch.distributed.{old}` is a private function and will be deprecated. Please use "
            f"`torch.distributed.{new.__name__}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return new(*args, **kwargs)

    called.__name__ = old
    return called


_all_gather_base = _deprecated(all_gather_into_tensor, "_all_gather_base")
_reduce_scatter_base = _deprecated(reduce_scatter_tensor, "_reduce_scatter_base")
all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
