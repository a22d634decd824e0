"""Batches in memory from which a device copies without blocking."""

from __future__ import annotations

import queue
from typing import Any

from taeda_data.pinning import pin

__all__ = ["_pin_memory_loop", "pin_memory"]

_SECONDS_BETWEEN_LOOKS = 5.0


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch whose tensors lie in memory that an accelerator copies from without blocking."""
    return pin(data, device)


def _pin_memory_loop(
    in_queue: Any, out_queue: Any, device_id: Any, done_event: Any, device: Any = None
) -> None:
    """Hand on what workers gave, pinned, until an event is set: what a thread of a program's own loader runs.

    Args:
        in_queue: Gives pairs of a number and a batch, or of a number and an error that a worker met.
        out_queue: Takes the pairs.
        device_id: Not read.
        done_event: Ends the loop.
        device: The kind of device that will copy.
    """
    while not done_event.is_set():
        try:
            index, data = in_queue.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Empty:
            continue
        out_queue.put((index, data if hasattr(data, "reraise") else pin(data, device)))
