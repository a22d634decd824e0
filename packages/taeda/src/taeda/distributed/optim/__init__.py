"""Optimizers of several processes."""

from __future__ import annotations

from typing import Any

from taeda.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from taeda.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from taeda.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer",
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
    "_apply_optimizer_in_backward",
]


def __getattr__(name: str) -> Any:
    if name == "DistributedOptimizer":  # which brings the calls of other processes along
        from taeda.distributed.optim.optimizer import DistributedOptimizer

        return DistributedOptimizer
    raise AttributeError(f"module 'taeda.distributed.optim' has no attribute {name!r}")
