"""Modules below `taeda.distributed` of which only the names are there: programs import them before they ask for groups.

What needs a process group raises NotImplementedError when it is used; settings and marks can be made.
"""

from __future__ import annotations

import enum
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from taeda import _absent

_HOME = "taeda.distributed"
_REASON = "there are no process groups; ask taeda.distributed.is_available() first"
_WRAPPING = (
    "CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy "
    "size_based_auto_wrap_policy transformer_auto_wrap_policy wrap"
)
_SHARDED = (
    "BackwardPrefetch CPUOffload CPUOffloadPolicy DataParallelMeshDims FSDPModule FlatParameter "
    "FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel LocalOptimStateDictConfig "
    "LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig "
    "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings "
    "StateDictType UnshardHandle fully_shard register_fsdp_forward_method share_comm_ctx"
)
#: Modules, and their names; those that begin with a capital letter are classes.
PARTS = {
    "algorithms": "Join JoinHook Joinable",
    "algorithms.join": "Join JoinHook Joinable",
    "algorithms.ddp_comm_hooks": "DDPCommHookType register_ddp_comm_hook",
    "algorithms.ddp_comm_hooks.default_hooks": "allreduce_hook bf16_compress_hook bf16_compress_wrapper "
    "fp16_compress_hook fp16_compress_wrapper",
    "algorithms.ddp_comm_hooks.powerSGD_hook": "PowerSGDState batched_powerSGD_hook powerSGD_hook",
    "algorithms.model_averaging": "",
    "algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "autograd": "backward context get_gradients",
    "checkpoint": "DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlanner SavePlanner "
    "StorageReader StorageWriter async_save load load_state_dict save save_state_dict",
    "checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "checkpoint.filesystem": "FileSystemReader FileSystemWriter",
    "checkpoint.format_utils": "dcp_to_torch_save torch_save_to_dcp",
    "checkpoint.state_dict": "StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict "
    "set_model_state_dict set_optimizer_state_dict set_state_dict",
    "checkpoint.stateful": "Stateful",
    "elastic": "",
    "elastic.multiprocessing": "",
    "elastic.multiprocessing.errors": "ChildFailedError record",
    "fsdp.fully_sharded_data_parallel": _SHARDED,
    "fsdp.wrap": _WRAPPING,
    "_functional_collectives": "all_gather_tensor all_reduce all_to_all_single broadcast reduce_scatter_tensor "
    "wait_tensor",
    "nn": "RemoteModule all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
    "nn.functional": "all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
    "optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer",
    "pipelining": "Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B SplitPoint "
    "pipe_split pipeline",
    "rpc": "BackendType RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo get_worker_info init_rpc remote "
    "rpc_async rpc_sync shutdown",
    "rpc.functions": "async_execution",
    "tensor.parallel": "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput "
    "RowwiseParallel SequenceParallel loss_parallel parallelize_module",
}  # fmt: skip


class ShardingStrategy(enum.Enum):
    """How parameters would be spread."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When the next parameters would be fetched."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """Which form states would have."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


def _record(fn: Any, error_handler: Any = None) -> Any:
    """The function itself: errors of one process show themselves."""
    return fn


def _settings(name: str) -> type:
    """A class of settings: what it is given, as attributes."""
    text = "Settings that programs make; nothing reads them."
    return type(name, (SimpleNamespace,), {"__module__": f"{_HOME}.fsdp", "__doc__": text})


#: What can be made and used although there are no groups.
_REAL: dict[str, Any] = {
    "BackwardPrefetch": BackwardPrefetch,
    "ShardingStrategy": ShardingStrategy,
    "StateDictType": StateDictType,
    "record": _record,
}
_SETTINGS = ("Config", "Offload", "Policy", "Precision")
_REAL |= {name: _settings(name) for name in _SHARDED.split() if name.endswith(_SETTINGS)}


def value(module: str, name: str) -> Any:
    """A name of such a module.

    Raises:
        AttributeError: The module has no such name.
    """
    if name in _REAL and name in PARTS.get(module, _SHARDED).split():
        return _REAL[name]
    if name not in PARTS.get(module, _SHARDED).split():
        raise AttributeError(f"module '{_HOME}.{module}' has no attribute {name!r}")
    make = _absent.cls if name[0].isupper() else _absent.function
    return make(f"{_HOME}.{module}.{name}", _REASON)


class _Part(ModuleType):
    """A module of names that are made when they are asked for."""

    def __init__(self, part: str) -> None:
        super().__init__(f"{_HOME}.{part}", f"Names of {part}, which needs process groups: {_REASON}.")
        self.__path__: list[str] = []
        self._part = part

    def __getattr__(self, name: str) -> Any:
        below = sys.modules.get(f"{self.__name__}.{name}")
        if below is None and name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self.__dict__.setdefault(name, value(self._part, name) if below is None else below)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *PARTS[self._part].split()})


def announce() -> None:
    """Make all these modules importable."""
    for part in PARTS:
        sys.modules.setdefault(f"{_HOME}.{part}", _Part(part))
