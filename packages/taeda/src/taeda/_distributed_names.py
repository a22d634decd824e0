"""Modules of training on several processes that hold nothing but names: each can be imported and asked about.

Nothing is an instance of their classes, and calling what they have says that it is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from taeda import _absent

_REASON = "of its module only the names are"
#: Below taeda.distributed: functions begin with a small letter or an underscore, classes with a capital.
NAMES = {
    "_shard": "shard_module shard_parameter",
    "_shard.sharded_tensor": "Shard ShardMetadata ShardedTensor ShardedTensorBase ShardedTensorMetadata "
    "TensorProperties",
    "_state_dict_utils": "",
    "_symmetric_memory": "empty enable_symm_mem_for_group get_symm_mem_workspace rendezvous",
    "_tools": "",
    "algorithms.ddp_comm_hooks.optimizer_overlap_hooks": "",
    "_shard.api": "ShardedTensor load_with_process_group shard_module shard_parameter",
    "_shard.metadata": "ShardMetadata",
    "_shard.sharding_spec": "ChunkShardingSpec EnumerableShardingSpec ShardMetadata ShardingSpec",
    "_shard.sharding_spec._internals": "_check_shard_metadata_pair_overlap check_tensor get_chunk_sharding_params "
    "get_chunked_dim_size get_split_size validate_non_overlapping_shards_metadata",
    "algorithms._comm_hooks": "default_hooks",
    "c10d_logger": "_exception_logger _time_logger",
    "checkpoint.utils": "CheckpointException _DistWrapper find_state_dict_object find_tensor_shard",
    "collective_utils": "SyncPayload all_gather broadcast",
    "tensor._dispatch": "OpDispatcher",
    "tensor._op_schema": "OpInfo OpSchema OpStrategy OutputSharding PlacementStrategy RuntimeSchemaInfo",
    "tensor._redistribute": "redistribute_local_tensor",
    "tensor._sharding_prop": "ShardingPropagator",
    "tensor._ops": "",
    "tensor.parallel.ddp": "",
    "tensor.parallel.input_reshard": "input_reshard",
    "elastic.agent": "",
    "elastic.agent.server": "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    "elastic.agent.server.api": "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec WorkerState",
    "fsdp._common_utils": "HandleTrainingState TrainingState _FSDPState _get_module_fsdp_state clean_tensor_name",
    "fsdp._init_utils": "ProcessGroupType",
    "fsdp._optim_utils": "_optim_state_dict",
    "fsdp._runtime_utils": "_lazy_init _post_backward_final_callback _reshard _root_pre_forward _unshard",
    "fsdp._state_dict_utils": "",
    "fsdp._traversal_utils": "_get_fsdp_handles _get_fsdp_states",
    "fsdp._unshard_param_utils": "_unshard_params",
    "elastic.events": "record",
    "elastic.metrics": "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig NullMetricHandler "
    "configure getStream get_elapsed_time_ms prof profile publish_metric put_metric",
    "elastic.rendezvous": "RendezvousHandler RendezvousParameters",
    "elastic.timer": "",
    "elastic.utils.logging": "",
    "nn.jit": "",
    "tensor.experimental._attention": "context_parallel context_parallel_unshard set_rotate_method",
    "tensor.parallel.fsdp": "enable_2d_with_fsdp",
    "utils": "_get_root_modules _sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes",
}  # fmt: skip
# Errors, which programs catch.
_ERRORS = {"CheckpointException"}


def _record(fn: Callable[..., Any], error_handler: object = None) -> Callable[..., Any]:
    """The function itself: errors of one process show themselves."""
    return fn


def _logger(name: str | None = None) -> Any:
    """The logger of that name."""
    import logging

    return logging.getLogger(name or "taeda.distributed.elastic")


def _clean_tensor_name(tensor_name: str) -> str:
    """A name without what wrapping modules put into it."""
    for part in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module."):
        tensor_name = tensor_name.replace(part, "")
    return tensor_name


# What can be used all the same.
_REAL: dict[str, dict[str, Any]] = {
    "c10d_logger": {"_exception_logger": _record, "_time_logger": _record},
    "fsdp._common_utils": {"clean_tensor_name": _clean_tensor_name},
    "elastic.utils.logging": {"get_logger": _logger},
}


#: Names of taeda.distributed itself.
TOP = frozenset({
    "AllToAllOptions", "AllgatherOptions",
    "AllreduceCoalescedOptions", "AllreduceOptions", "BackendConfig", "BarrierOptions",
    "BroadcastOptions", "BuiltinCommHookType", "GatherOptions", "Logger", "ProcessGroupGloo", "ReduceOptions",
    "ReduceScatterOptions", "Reducer", "ScatterOptions", "_Work", "_broadcast_coalesced",
    "_compute_bucket_assignment_by_size", "_register_builtin_comm_hook", "_register_comm_hook",
    "_verify_params_across_processes", "shrink_group", "split_group",
})  # fmt: skip


def top(name: str) -> object:
    """What has one of these names."""
    import taeda.distributed as home

    vars(home)[name] = found = _value(home, "taeda.distributed", name)
    return found


def has(name: str) -> bool:
    """Whether a module below taeda.distributed holds names only."""
    return name in NAMES


def make(name: str) -> ModuleType:
    """The module of that name below taeda.distributed."""
    import taeda.distributed as home

    dotted = f"taeda.distributed.{name}"
    module = ModuleType(dotted, f"Names of `{name}`: {_REASON}.")
    for item in NAMES[name].split():
        module.__dict__[item] = _value(home, dotted, item)
    module.__dict__.update(_REAL.get(name, {}))
    module.__dict__["__path__"] = []
    module.__dict__["__getattr__"] = partial(child, name)
    return module


def _value(home: ModuleType, dotted: str, item: str) -> object:
    """What stands elsewhere already is the same object here."""
    for place in (home, _tensor()):
        if item in vars(place):
            return vars(place)[item]
    if item in _ERRORS:
        return type(item, (RuntimeError,), {"__module__": dotted, "__doc__": f"Never raised: {_REASON}."})
    if item[0].isupper() or (item.startswith("_") and item[1].isupper()):
        return _shared_class(item)
    return _absent.function(f"{dotted}.{item}", _REASON)


_classes: dict[str, type] = {}


def _shared_class(name: str) -> type:
    """One class for all modules that have it."""
    if name not in _classes:
        _classes[name] = _absent.cls(f"taeda.distributed.{name}", _REASON)
    return _classes[name]


def _tensor() -> ModuleType:
    from taeda.distributed import tensor

    return tensor


def child(name: str, item: str) -> ModuleType:
    """A module below another one, as its attribute.

    Raises:
        AttributeError: There is none.
    """
    if not has(f"{name}.{item}"):
        raise AttributeError(f"module 'taeda.distributed.{name}' has no attribute {item!r}")
    from importlib import import_module

    return import_module(f"taeda.distributed.{name}.{item}")
