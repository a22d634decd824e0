"""Where programs look for the modes of recording."""

from __future__ import annotations

import threading
from typing import Any

from taeda_tensor_core import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _Switch(threading.local):
    on = True


_multithreading = _Switch()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told on this thread; True before."""
    return _multithreading.on


class set_multithreading_enabled:
    """A switch that is known, at once or for a block: a backward uses one thread for each device in any case.

    Args:
        mode: What `is_multithreading_enabled` then answers.

    Example:
        >>> with taeda.autograd.set_multithreading_enabled(False):
        ...     taeda.autograd.is_multithreading_enabled()
        False
    """

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = _multithreading.on, mode
        _multithreading.on = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _multithreading.on = self.prev

    def clone(self) -> set_multithreading_enabled:
        """Another one like it."""
        return set_multithreading_enabled(self.mode)
