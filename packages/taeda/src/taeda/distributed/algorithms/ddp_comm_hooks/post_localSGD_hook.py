"""Averages of gradients over all processes at first, and then over few of them.

Source: Lin, Stich, Patel and Jaggi, "Don't Use Large Mini-Batches, Use Local SGD", 2018.
"""

from __future__ import annotations

import logging
from typing import Any

import taeda as torch
from taeda.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from taeda.futures import Future

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

_logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """What the hook keeps from step to step.

    Args:
        process_group: The processes of the first steps; None for all.
        subgroup: Those of the later ones; None for the processes of one machine.
        start_localSGD_iter: How many first steps there are.
        post_local_gradient_allreduce: Whether gradients are averaged in later steps at all.
    """

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def __getstate__(self) -> dict[str, Any]:
        _logger.warning("process groups cannot be saved: PostLocalSGDState is saved without them")
        return {
            key: value for key, value in self.__dict__.items() if key not in ("process_group", "subgroup")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=None, subgroup=None)

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Counts a step at its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future:
    """The average of a bucket over all processes in the first steps, over those of a subgroup later.

    An averager of parameters goes with it, after the optimizer's steps (`algorithms.model_averaging`).

    Args:
        state: A `PostLocalSGDState`.
        bucket: Gradients of several parameters.
    """
    begun = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not begun:
        return default_hooks.allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        return debugging_hooks.noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = torch.distributed.new_subgroups()
    return default_hooks.allreduce_hook(state.subgroup, bucket)
