"""Averages of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import taeda as torch
from taeda.distributed import _world
from taeda.distributed._reductions import RedOpType

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: Any = None) -> None:
    """Average parameters over the processes, in place."""
    group = process_group or _world.default_group()
    values = list(params)
    if not values:
        return
    with torch.no_grad():
        flat = torch.cat([p.detach().reshape(-1) for p in values]) / group.size()
        group.allreduce([flat], RedOpType.SUM, later=False)
        for p, part in zip(values, flat.split([p.numel() for p in values]), strict=True):
            p.detach().copy_(part.view(tuple(p.shape)))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """The parameters, also of an optimizer's groups, that have a gradient."""
    found = []
    for item in params:
        for p in item["params"] if isinstance(item, dict) else [item]:
            if p.grad is not None:
                found.append(p)
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Average the parameters that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)
