"""Functions that average the gradients of `DistributedDataParallel`, for its `register_comm_hook`."""

from __future__ import annotations

from enum import Enum
from typing import Any

from taeda.distributed.algorithms.ddp_comm_hooks import default_hooks

default = default_hooks


class DDPCommHookType(Enum):
    """Names of functions that average gradients."""

    ALLREDUCE = "allreduce_hook"
    FP16_COMPRESS = "fp16_compress_hook"
    BF16_COMPRESS = "bf16_compress_hook"
    QUANTIZE_PER_TENSOR = "quantization_pertensor_hook"
    QUANTIZE_PER_CHANNEL = "quantization_perchannel_hook"
    POWER_SGD = "powerSGD_hook"
    POWER_SGD_RANK2 = "powerSGD_hook with matrices of rank 2"
    BATCHED_POWER_SGD = "batched_powerSGD_hook"
    BATCHED_POWER_SGD_RANK2 = "batched_powerSGD_hook with matrices of rank 2"
    NOOP = "noop_hook"


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a model of `DistributedDataParallel` average its gradients by a function of this package.

    Args:
        comm_hook_type: Its name.
        model: The model.
        state: What the function gets first: a group of processes, or None for all. Of matrices of low rank there are
            ranks 1 and 2, by their names.
    """
    from taeda.distributed.algorithms.ddp_comm_hooks import debugging_hooks, powerSGD_hook, quantization_hooks

    name, _, rank = comm_hook_type.value.partition(" with matrices of rank ")
    if hasattr(powerSGD_hook, name):
        state = powerSGD_hook.PowerSGDState(state, int(rank or 1))
    homes = (default_hooks, debugging_hooks, powerSGD_hook, quantization_hooks)
    model.register_comm_hook(state, next(getattr(home, name) for home in homes if hasattr(home, name)))


def __getattr__(name: str) -> Any:
    if name in ("debugging_hooks", "post_localSGD_hook", "powerSGD_hook", "quantization_hooks"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    from taeda import _distributed_names

    return _distributed_names.child("algorithms.ddp_comm_hooks", name)
