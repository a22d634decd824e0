"""A scaler of the gradients of modules that are cut over processes."""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda.distributed import _world
from taeda.distributed._reductions import RedOpType

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(torch.amp.GradScaler):
    """`GradScaler` whose steps all processes leave out when one has found numbers that are not finite.

    Args:
        device, init_scale, growth_factor, backoff_factor, growth_interval, enabled: As there.
        process_group: The processes; None for all.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device, init_scale=init_scale, backoff_factor=backoff_factor, growth_factor=growth_factor,
            growth_interval=growth_interval, enabled=enabled,
        )  # fmt: skip
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        """Divides gradients, and tells all processes whether they are finite."""
        super().unscale_(optimizer)
        if not self._enabled:
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        group = self.process_group or _world.default_group()
        for value in found.values():
            group.allreduce([value], RedOpType.MAX, later=False)
