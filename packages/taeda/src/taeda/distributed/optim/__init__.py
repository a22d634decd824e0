"""Optimizers of several processes."""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from taeda.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer = _absent.cls(
    "taeda.distributed.optim.DistributedOptimizer", "there are no remote procedure calls"
)


def _apply_optimizer_in_backward(
    optimizer_class: Any, params: Any, optimizer_kwargs: dict[str, Any], register_hook: bool = True
) -> None:
    """Give each parameter an optimizer of its own, which steps as soon as its gradient is there.

    Args:
        optimizer_class: Called with a list of one parameter and the options.
        params: The parameters.
        optimizer_kwargs: The options.
        register_hook: Whether the steps happen in the backward pass; else programs call those of
            `parameter._in_backward_optimizers`.
    """

    def give(parameter: Any) -> None:
        made = optimizer_class([parameter], **optimizer_kwargs)
        if not hasattr(parameter, "_in_backward_optimizers"):
            parameter._in_backward_optimizers = []
        parameter._in_backward_optimizers.append(made)

        def step(_: Any) -> None:
            made.step()
            parameter.grad = None

        if register_hook:
            parameter.register_post_accumulate_grad_hook(step)

    for parameter in params:
        give(parameter)
