"""Where programs look for the modes of recording."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Accepted, at once or for a block: a backward uses one thread for each device in any case.

    Args:
        mode: Kept as the attribute `mode`.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        """Another one like it."""
        return set_multithreading_enabled(self.mode)
