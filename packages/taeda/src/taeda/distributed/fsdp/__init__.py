"""Modules whose parameters are spread over processes: settings and rules as they are, the rest as names."""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.distributed.fsdp import wrap
from taeda.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FlatParameter", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "fully_shard", "register_fsdp_forward_method", "wrap",
]  # fmt: skip

_REASON = "there are no tensors spread over processes; DistributedDataParallel keeps a copy in each"
_ABOUT = (
    "fsdp_modules optim_state_dict optim_state_dict_to_load full_optim_state_dict sharded_optim_state_dict "
)
_ABOUT += (
    "rekey_optim_state_dict shard_full_optim_state_dict scatter_full_optim_state_dict set_state_dict_type "
)
_ABOUT += "get_state_dict_type state_dict_type summon_full_params"
FullyShardedDataParallel = _absent.cls("taeda.distributed.fsdp.FullyShardedDataParallel", _REASON)
for _name, _function in _absent.functions(
    "taeda.distributed.fsdp.FullyShardedDataParallel", _ABOUT, _REASON
).items():
    setattr(FullyShardedDataParallel, _name, staticmethod(_function))
FSDPModule = _absent.cls("taeda.distributed.fsdp.FSDPModule", _REASON)
FlatParameter = _absent.cls("taeda.distributed.fsdp.FlatParameter", _REASON)
OffloadPolicy = _absent.cls("taeda.distributed.fsdp.OffloadPolicy", _REASON)
CPUOffloadPolicy = _absent.cls("taeda.distributed.fsdp.CPUOffloadPolicy", _REASON, OffloadPolicy)
MixedPrecisionPolicy = _absent.cls("taeda.distributed.fsdp.MixedPrecisionPolicy", _REASON)
fully_shard = _absent.function("taeda.distributed.fsdp.fully_shard", _REASON)
register_fsdp_forward_method = _absent.function(
    "taeda.distributed.fsdp.register_fsdp_forward_method", _REASON
)


def __getattr__(name: str) -> Any:
    if name in ("fully_sharded_data_parallel", "sharded_grad_scaler"):
        from importlib import import_module

        return import_module(f"taeda.distributed.fsdp.{name}")
    from taeda import _distributed_names

    return _distributed_names.child("fsdp", name)
