"""Sizes that depend on values, as functions for tensors without elements ask for them (`get_ctx`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FakeContext:
    """What `get_ctx` gives.

    Args:
        size: What stands for every size that depends on values.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.asked = False

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that nobody knows: a number within the bounds stands for it."""
        self.asked = True
        found = self._size if self._size >= min else min + self._size
        return found if max is None or found <= max else max

    create_unbacked_symint = new_dynamic_size


class _Thread(threading.local):
    context: FakeContext | None = None


_thread = _Thread()


def context() -> FakeContext | None:
    """The one of the block that is in force."""
    return _thread.context


@contextmanager
def sizes_are(size: int) -> Iterator[FakeContext]:
    """A block in which `get_ctx` gives a context whose sizes are that number."""
    before = _thread.context
    _thread.context = made = FakeContext(size)
    try:
        yield made
    finally:
        _thread.context = before
