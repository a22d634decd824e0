"""Optimizers of several processes."""

from __future__ import annotations

from taeda import _absent
from taeda.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from taeda.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer = _absent.cls(
    "taeda.distributed.optim.DistributedOptimizer", "there are no remote procedure calls"
)
