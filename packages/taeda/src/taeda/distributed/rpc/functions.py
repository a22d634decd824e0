"""Marks of functions that other processes call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["async_execution"]


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that returns a `Future`: who calls it from another process gets the future's value.

    No thread waits for it meanwhile. Under ``@staticmethod`` and ``@classmethod`` it is the inner one.

    Example:
        >>> @rpc.functions.async_execution                                          # doctest: +SKIP
        ... def add_chained(to, x, y, z):
        ...     return rpc.rpc_async(to, torch.add, args=(x, y)).then(lambda done: done.wait() + z)
    """

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapped._wrapped_async_rpc_function = fn  # type: ignore[attr-defined]
    return wrapped
