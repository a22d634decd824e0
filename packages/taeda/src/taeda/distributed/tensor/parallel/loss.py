"""Losses of scores that are cut by classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taeda.distributed.tensor.experimental import implicit_replication

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Context for `cross_entropy` of scores that are cut by classes, with labels and weights that all processes have.

    It is computed from whole scores, as outside; there, labels that are plain tensors are refused.
    """
    with implicit_replication():
        yield
