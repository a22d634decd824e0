"""Questions about programs that are being followed: none is."""

from __future__ import annotations

from typing import Any

__all__ = ["CompileContext", "TracingContext", "active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> None:
    """The mode of fake tensors in force: None."""
    return


def detect_fake_mode(inputs: Any = None) -> None:
    """The mode of fake tensors that arguments belong to: None."""
    return


class TracingContext:
    """What is known of the program that is being followed."""

    @staticmethod
    def try_get() -> None:
        """None: none is."""
        return


class CompileContext:
    """What is known of the compilation that goes on."""

    @staticmethod
    def try_get() -> None:
        """None: none does."""
        return

    @staticmethod
    def current_compile_id() -> None:
        """None: none does."""
        return
