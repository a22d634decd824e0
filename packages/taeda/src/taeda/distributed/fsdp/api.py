"""How a module's parameters would be spread and kept: choices and settings that programs make and hand around."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(enum.Enum):
    """What is spread: parameters, gradients and states, or less."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When backward fetches the next parameters."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """The form of a state dict."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


class OptimStateKeyType(enum.Enum):
    """Keys of an optimizer's state."""

    PARAM_NAME = enum.auto()
    PARAM_ID = enum.auto()


@dataclass
class MixedPrecision:
    """Dtypes of parameters, of sums of gradients and of buffers."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """Whether parameters rest in the host's memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether a state dict goes to the host's memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Of a whole state dict: on the first process only?"""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of each process's part."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of parts of all processes."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether an optimizer's state dict goes to the host's memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Of a whole one: on the first process only?"""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of each process's part."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of parts of all processes."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """The form of state dicts, with its settings."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
