"""Questions about operators that are being recorded with symbols: none are."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode in force: None."""
    return
