"""Settings of what a compiler that is not there would log: accepted, and nothing is logged."""

from typing import Any

__all__ = ["set_logs"]


def set_logs(**settings: Any) -> None:
    """Nothing: no part that these settings name is there."""
