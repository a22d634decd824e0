"""Layers whose parameters lie over processes."""

from taeda.distributed.tensor.parallel.api import parallelize_module
from taeda.distributed.tensor.parallel.loss import loss_parallel
from taeda.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip


def __getattr__(name: str) -> object:
    from taeda import _distributed_names

    return _distributed_names.child("tensor.parallel", name)
