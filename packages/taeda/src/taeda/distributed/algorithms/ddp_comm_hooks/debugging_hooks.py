"""A hook that leaves the gradients of each process as they are, to measure what communication costs."""

from __future__ import annotations

from typing import Any

from taeda.futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: Any) -> Future:
    """The gradients of this process."""
    future = Future()
    future.set_result(bucket.buffer())
    return future
