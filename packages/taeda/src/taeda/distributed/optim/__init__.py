"""Optimizers of several processes."""

from __future__ import annotations

from taeda import _absent
from taeda.distributed.optim.apply_optimizer_in_backward import _apply_optimizer_in_backward
from taeda.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from taeda.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = [
    "DistributedOptimizer",
    "PostLocalSGDOptimizer",
    "ZeroRedundancyOptimizer",
    "_apply_optimizer_in_backward",
]

DistributedOptimizer = _absent.cls(
    "taeda.distributed.optim.DistributedOptimizer", "there are no remote procedure calls"
)
