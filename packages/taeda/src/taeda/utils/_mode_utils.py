"""Blocks without the modes in force."""

from taeda.utils._python_dispatch import _disable_current_modes as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: list[object]) -> bool:
    """Whether all are the first one."""
    return all(mode == modes[0] for mode in modes)
