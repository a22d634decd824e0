"""Averages of parameters over few processes often, and over many now and then.

Source: Lin, Stich, Patel and Jaggi, "Don't Use Large Mini-Batches, Use Local SGD", 2018.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import taeda as torch
from taeda.distributed.algorithms.model_averaging import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters over groups of several sizes, each with a period of its own.

    Args:
        period_group_size_dict: Sizes of groups by period, from the shortest period and smallest group on; the last
            group is all processes.
        warmup_steps: Steps before the first average.
        process_group: The processes; None for all.

    Raises:
        ValueError: No periods, ones that do not grow, or groups that do not grow to all processes.

    Example:
        >>> HierarchicalModelAverager({2: 2, 4: 4, 16: 8})                # doctest: +SKIP
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        sizes = dict(period_group_size_dict or {})
        if not sizes:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods = list(sizes)
        if periods[0] < 1:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if sorted(periods) != periods or sorted(sizes.values()) != list(sizes.values()):
            raise ValueError(f"Arg ``period_group_size_dict``: periods and sizes must grow, found {sizes}")
        if periods[-1] == 1:
            warnings.warn(
                "When the maximum period in arg ``period_group_size_dict`` is 1, parameters are averaged over all "
                "processes in every step: DistributedDataParallel, which averages gradients, does as much",
                stacklevel=2,
            )
        if warmup_steps < 0:
            raise ValueError(f"Arg ``warmup_steps`` must be a non-negative number, found {warmup_steps}.")
        whole = self.process_group
        if sizes[periods[-1]] != whole.size():
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {sizes[periods[-1]]} must be equal to the size of "
                f"arg ``process_group`` {whole.size()}."
            )
        self.warmup_steps, self._periods = warmup_steps, periods
        self.period_process_group_dict: OrderedDict[int, Any] = OrderedDict()
        for period, size in sizes.items():
            alone = size == whole.size()
            self.period_process_group_dict[period] = (
                whole if alone else torch.distributed.new_subgroups(size)[0]
            )

    def average_parameters(self, params: Any) -> None:
        """Counts a step, and averages over the group of the longest period that is over."""
        if self.step >= self.warmup_steps:
            over = [period for period in self._periods if self.step % period == 0]
            if over:
                utils.average_parameters_or_parameter_groups(params, self.period_process_group_dict[over[-1]])
        self.step += 1
