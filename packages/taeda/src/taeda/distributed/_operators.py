"""What processes do together, as operators: `ops._c10d_functional` and its kin, which libraries and graphs name.

A group is given by its name. Results are there when an operator returns, and gradients flow through all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed import _functional_collectives as together
from taeda.distributed._world import groups
from taeda.distributed.distributed_c10d import _resolve_process_group as named
from taeda.library import Library
from taeda.library._custom_results import Named
from taeda.library._operators import publish

_PACKAGES = ("c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
_libraries = {name: Library(name, "FRAGMENT") for name in _PACKAGES}


def _operator(schema: str, *packages: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function is the operator of that schema in each of the packages."""

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        for package in packages or ("_c10d_functional",):
            library = _libraries[package]
            library.define(schema)
            library.impl(schema.partition("(")[0], function, "CompositeImplicitAutograd")
        return function

    return take


def _of_size(group_name: str, group_size: int, operator: str) -> Any:
    """The group, which has that many processes."""
    group = named(group_name)
    if group.size() != group_size:
        raise ValueError(
            f"{operator}: argument 'group_size' is {group_size}, group {group_name!r} has {group.size()} processes"
        )
    return group


def _of_ranks(ranks: Any) -> str:
    """The name of the group of these processes, as the older package says which is meant."""
    for name in groups.named:
        if dist.get_process_group_ranks(named(name)) == list(ranks):
            return name
    raise ValueError(f"c10d_functional: there is no group of the processes {list(ranks)}")


_BOTH = ("_c10d_functional", "_c10d_functional_autograd")


@_operator("wait_tensor(Tensor tensor) -> Tensor", "_c10d_functional", "c10d_functional")
@_operator("_wrap_tensor_autograd(Tensor input) -> Tensor")
def _complete(tensor: Any) -> Any:
    return tensor.view_as(tensor)


@_operator("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor")
def _all_reduce(input: Any, reduce_op: str, group_name: str) -> Any:
    return together.all_reduce(input, reduce_op, named(group_name))


@_operator("all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)")
def _all_reduce_(input: Any, reduce_op: str, group_name: str) -> Any:
    dist.all_reduce(input, together._op(reduce_op), named(group_name))
    return input


@_operator("all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]")
def _all_reduce_coalesced(inputs: Any, reduce_op: str, group_name: str) -> Any:
    return [_all_reduce(item, reduce_op, group_name) for item in inputs]


@_operator("all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[]")
def _all_reduce_coalesced_(inputs: Any, reduce_op: str, group_name: str) -> Any:
    return [_all_reduce_(item, reduce_op, group_name) for item in inputs]


@_operator("broadcast(Tensor input, int src, str group_name) -> Tensor")
def _broadcast(input: Any, src: int, group_name: str) -> Any:
    return together.broadcast(input, src, named(group_name))


@_operator("broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)")
def _broadcast_(input: Any, src: int, group_name: str) -> Any:
    dist.broadcast(input, group=named(group_name), group_src=src)
    return input


@_operator("all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor", *_BOTH)
def _all_gather(input: Any, group_size: int, group_name: str) -> Any:
    group = _of_size(group_name, group_size, "all_gather_into_tensor")
    return together.all_gather_tensor(input, 0, group)


@_operator(
    "all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> Tensor(a!)"
)
def _all_gather_out(input: Any, group_size: int, group_name: str, out: Any) -> Any:
    return out.copy_(_all_gather(input, group_size, group_name))


@_operator("all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]")
def _all_gather_coalesced(inputs: Any, group_size: int, group_name: str) -> Any:
    return [_all_gather(item, group_size, group_name) for item in inputs]


@_operator(
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor", *_BOTH
)
def _reduce_scatter(input: Any, reduce_op: str, group_size: int, group_name: str) -> Any:
    group = _of_size(group_name, group_size, "reduce_scatter_tensor")
    return together.reduce_scatter_tensor(input, reduce_op, 0, group)


@_operator(
    "reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str group_name, *, Tensor(a!) out) "
    "-> Tensor(a!)"
)
def _reduce_scatter_out(input: Any, reduce_op: str, group_size: int, group_name: str, out: Any) -> Any:
    return out.copy_(_reduce_scatter(input, reduce_op, group_size, group_name))


@_operator(
    "reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> Tensor[]"
)
def _reduce_scatter_coalesced(inputs: Any, reduce_op: str, group_size: int, group_name: str) -> Any:
    return [_reduce_scatter(item, reduce_op, group_size, group_name) for item in inputs]


@_operator(
    "all_to_all_single(Tensor input, int[] output_split_sizes, int[] input_split_sizes, str group_name) -> Tensor",
    *_BOTH,
)
def _all_to_all(input: Any, output_split_sizes: Any, input_split_sizes: Any, group_name: str) -> Any:
    return together.all_to_all_single(input, output_split_sizes, input_split_sizes, named(group_name))


@_operator(
    "shard_dim_alltoall(Tensor input, int gather_dim, int shard_dim, str group_name) -> Tensor", "_dtensor"
)
def _shard_dim_alltoall(input: Any, gather_dim: int, shard_dim: int, group_name: str) -> Any:
    group = named(group_name)
    parts = torch.cat(input.chunk(group.size(), shard_dim))
    rows = [parts.shape[0] // group.size()] * group.size()
    return torch.cat(together.all_to_all_single(parts, rows, rows, group).chunk(group.size()), gather_dim)


_OLD = "str tag, int[] ranks, int group_size) -> Tensor"


@_operator(f"all_reduce(Tensor self, str reduceOp, {_OLD}", "c10d_functional")
def _old_all_reduce(self: Any, op: str, tag: str, ranks: Any, group_size: int) -> Any:
    return _all_reduce(self, op, _of_ranks(ranks))


@_operator(f"all_reduce_coalesced(Tensor[] self, str reduceOp, {_OLD}[]", "c10d_functional")
def _old_all_reduce_coalesced(self: Any, op: str, tag: str, ranks: Any, group_size: int) -> Any:
    return _all_reduce_coalesced(self, op, _of_ranks(ranks))


@_operator(f"broadcast(Tensor self, int src, {_OLD}", "c10d_functional")
def _old_broadcast(self: Any, src: int, tag: str, ranks: Any, group_size: int) -> Any:
    return _broadcast(self, src, _of_ranks(ranks))


@_operator(f"all_gather_into_tensor(Tensor shard, {_OLD}", "c10d_functional")
def _old_all_gather(shard: Any, tag: str, ranks: Any, group_size: int) -> Any:
    return _all_gather(shard, group_size, _of_ranks(ranks))


@_operator(f"all_gather_into_tensor_coalesced(Tensor[] input, {_OLD}[]", "c10d_functional")
def _old_all_gather_coalesced(input: Any, tag: str, ranks: Any, group_size: int) -> Any:
    return _all_gather_coalesced(input, group_size, _of_ranks(ranks))


@_operator(f"reduce_scatter_tensor(Tensor input, str reduceOp, {_OLD}", "c10d_functional")
def _old_reduce_scatter(input: Any, op: str, tag: str, ranks: Any, group_size: int) -> Any:
    return _reduce_scatter(input, op, group_size, _of_ranks(ranks))


@_operator(f"reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduceOp, {_OLD}[]", "c10d_functional")
def _old_reduce_scatter_coalesced(inputs: Any, op: str, tag: str, ranks: Any, group_size: int) -> Any:
    return _reduce_scatter_coalesced(inputs, op, group_size, _of_ranks(ranks))


@_operator(
    f"all_to_all_single(Tensor input, int[]? output_split_sizes, int[]? input_split_sizes, {_OLD}",
    "c10d_functional",
)
def _old_all_to_all(input: Any, outputs: Any, inputs: Any, tag: str, ranks: Any, group_size: int) -> Any:
    return together.all_to_all_single(input, outputs, inputs, named(_of_ranks(ranks)))


def _of_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function is `ops.c10d.<name>`, whose group is an argument; a schema has no word for that."""

    def take(function: Callable[..., Any]) -> Callable[..., Any]:
        publish(f"c10d::{name}", Named(f"c10d::{name}", function))
        return function

    return take


# Those that write into tensors take lists of one tensor, for one device.
@_of_group("allreduce_")
def _group_allreduce(
    tensors: Any, group: Any, op: Any, sparse: Any = None, async_op: bool = True, timeout: int = -1
) -> Any:
    return tensors, group.allreduce(tensors, op)


@_of_group("allreduce_coalesced_")
def _group_allreduce_coalesced(
    tensors: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1
) -> Any:
    return group.allreduce_coalesced(tensors, op)


@_of_group("broadcast_")
def _group_broadcast(
    tensors: Any, group: Any, root: int, root_tensor: int = 0, async_op: bool = True, timeout: int = -1
) -> Any:
    return tensors, group.broadcast(tensors, root)


@_of_group("reduce_")
def _group_reduce(
    tensors: Any,
    group: Any,
    op: Any,
    root: int,
    root_tensor: int = 0,
    async_op: bool = True,
    timeout: int = -1,
) -> Any:
    return group.reduce(tensors, root, op)


@_of_group("allgather_")
def _group_allgather(outputs: Any, inputs: Any, group: Any, async_op: bool = True, timeout: int = -1) -> Any:
    return outputs, group.allgather(outputs, inputs)


@_of_group("_allgather_base_")
def _group_allgather_base(
    output: Any, input: Any, group: Any, async_op: bool = True, timeout: int = -1
) -> Any:
    return output, dist.all_gather_into_tensor(output, input, group, True)


@_of_group("reduce_scatter_")
def _group_reduce_scatter(
    outputs: Any, inputs: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1
) -> Any:
    return outputs, group.reduce_scatter(outputs, inputs, op)


@_of_group("_reduce_scatter_base_")
def _group_reduce_scatter_base(
    output: Any, input: Any, group: Any, op: Any, async_op: bool = True, timeout: int = -1
) -> Any:
    return output, dist.reduce_scatter_tensor(output, input, op, group, True)


@_of_group("gather_")
def _group_gather(
    outputs: Any, inputs: Any, group: Any, root: int, async_op: bool = True, timeout: int = -1
) -> Any:
    return group.gather(outputs, inputs, root)


@_of_group("scatter_")
def _group_scatter(
    outputs: Any, inputs: Any, group: Any, root: int, async_op: bool = True, timeout: int = -1
) -> Any:
    return outputs, group.scatter(outputs, inputs, root)


@_of_group("alltoall_")
def _group_alltoall(outputs: Any, inputs: Any, group: Any, async_op: bool = True, timeout: int = -1) -> Any:
    return outputs, group.alltoall(outputs, inputs)


@_of_group("alltoall_base_")
def _group_alltoall_base(
    output: Any, input: Any, group: Any, rows: Any, given: Any, async_op: bool = True, timeout: int = -1
) -> Any:
    return dist.all_to_all_single(output, input, rows or None, given or None, group, True)


@_of_group("barrier")
def _group_barrier(tensor: Any, group: Any, device_ids: Any, async_op: bool = True, timeout: int = -1) -> Any:
    return group.barrier()


@_of_group("send")
def _group_send(tensors: Any, group: Any, place: int, tag: int) -> Any:
    return group.send(tensors, place, tag)


@_of_group("recv_")
def _group_recv(tensors: Any, group: Any, place: int, tag: int) -> Any:
    return group.recv(tensors, place, tag)


@_of_group("recv_any_source_")
def _group_recv_any(tensors: Any, group: Any, tag: int) -> Any:
    return group.recv_anysource(tensors, tag)
