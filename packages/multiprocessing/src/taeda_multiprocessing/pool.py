"""Pools whose arguments move to shared memory when they are handed in, so that workers and the program share them."""

from __future__ import annotations

import multiprocessing.pool
from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from typing import Any

from taeda_multiprocessing import reductions

__all__ = ["Pool", "ThreadPool"]


class Pool(multiprocessing.pool.Pool):
    """Python's pool of processes; tensors among the arguments, in lists, tuples and dicts too, become shared.

    They do so in the thread that hands them in. Those of ``imap`` are sent by value where they come from an iterator,
    which the pool's own thread reads.
    """

    def apply_async(self, func: Any, args: Any = (), kwds: Any = None, *rest: Any, **options: Any) -> Any:
        """``func(*args, **kwds)`` in a worker."""
        kwds = {} if kwds is None else kwds
        reductions.share_nested([list(args), kwds])
        return super().apply_async(func, args, kwds, *rest, **options)

    def imap(self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = 1) -> Any:
        """Results one after another, in order."""
        _share_items(iterable)
        return super().imap(func, iterable, chunksize)

    def imap_unordered(
        self, func: Callable[[Any], Any], iterable: Iterable[Any], chunksize: int | None = 1
    ) -> Any:
        """Results as they come."""
        _share_items(iterable)
        return super().imap_unordered(func, iterable, chunksize)

    def _map_async(self, func: Any, iterable: Any, *rest: Any) -> Any:
        items = iterable if isinstance(iterable, (list, tuple)) else list(iterable)
        _share_items(items)
        return super()._map_async(func, items, *rest)  # type: ignore[misc]


def _share_items(items: Any) -> None:
    if isinstance(items, (list, tuple)):
        reductions.share_nested(items)
