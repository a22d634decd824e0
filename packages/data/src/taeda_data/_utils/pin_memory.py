"""Batches in memory from which a device copies without blocking."""

from __future__ import annotations

from typing import Any

from taeda_data.pinning import pin

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch whose tensors lie in memory that an accelerator copies from without blocking."""
    return pin(data, device)
