"""Modules whose inner values are computed again in the backward."""

from __future__ import annotations

from typing import Any

from taeda.distributed._composable.contract import contract
from taeda.utils.checkpoint import checkpoint as recomputed
from taeda_registry.slots import nn

__all__ = ["checkpoint"]


@contract()
def checkpoint(module: nn.Module, **kwargs: Any) -> nn.Module:
    """Let a module keep its inputs alone, and compute what its backward needs again.

    Args:
        module: Changed in place.
        kwargs: `preserve_rng_state` and others of `utils.checkpoint.checkpoint`.

    Raises:
        NotImplementedError: `use_reentrant` is true.

    Example:
        >>> from taeda.distributed._composable import checkpoint
        >>> layers = checkpoint(taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU()))
        >>> layers(taeda.ones(1, 2)).sum().backward()
    """
    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError("checkpoint: use_reentrant=True is not there for modules; leave it out")
    inner = module.forward
    module.forward = lambda *args, **named: recomputed(inner, *args, use_reentrant=False, **kwargs, **named)
    return module
