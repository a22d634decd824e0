"""Objects that average parameters over processes every few steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

from taeda.distributed import _world
from taeda.distributed.algorithms.model_averaging import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """An object that averages parameters over processes.

    Args:
        process_group: The processes; None for all.
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = process_group or _world.default_group()
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """Averages, or counts a step."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps, after `warmup_steps`.

    Args:
        period: Steps between averages.
        warmup_steps: Steps before the first one.
        process_group: The processes; None for all.

    Example:
        >>> averager = PeriodicModelAverager(period=4)  # doctest: +SKIP
        >>> averager.average_parameters(net.parameters())  # after each step  # doctest: +SKIP
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Any) -> None:
        """Counts a step, and averages in every `period`-th."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
