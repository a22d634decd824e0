"""Ctrl-C that waits until a change of many tensors is done."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Late:
    """A block at whose end Ctrl-C is answered, so that what it changes is not left half-changed.

    Only the process's first thread is ever interrupted; in others the block is as without this.

    Example:
        >>> with Late():
        ...     for average, value in pairs:
        ...         average.lerp_(value, 0.1)
    """

    def __init__(self) -> None:
        self._came: list[Any] = []
        self._before: Any = None

    def __enter__(self) -> None:
        first = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT) if first else None
        if callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            return
        if signal.getsignal(signal.SIGINT) == self._note:  # else the block has set another
            signal.signal(signal.SIGINT, self._before)
        if self._came:
            self._before(signal.SIGINT, self._came[0])

    def _note(self, number: int, frame: Any) -> None:
        self._came.append(frame)
