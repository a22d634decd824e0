"""Where programs look for what cuts arguments for several devices and joins results."""

from __future__ import annotations

from typing import Any

from taeda_nn.parallel.data_parallel import gather, scatter

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter_kwargs(
    inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Positional and named arguments, cut for several devices; the shorter list is filled with empty ones."""
    first = list(scatter(inputs, target_gpus, dim)) if inputs else []
    second = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    first += [()] * (len(second) - len(first))
    second += [{}] * (len(first) - len(second))
    return tuple(first), tuple(second)
