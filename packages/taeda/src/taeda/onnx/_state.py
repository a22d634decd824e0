"""Whether a model is being exported."""

from __future__ import annotations

_depth = 0


def is_in_onnx_export() -> bool:
    """Whether a model is being exported."""
    return _depth > 0


def enter(step: int) -> None:
    """Note that an export begins (1) or ends (-1)."""
    global _depth
    _depth += step
