"""Questions about programs that are being followed: none is but by fake tensors."""

from __future__ import annotations

from typing import Any

from taeda._subclasses import FakeTensor, FakeTensorMode
from taeda._subclasses.fake_tensor import active_fake_mode
from taeda.utils._pytree import tree_iter

__all__ = ["CompileContext", "TracingContext", "active_fake_mode", "detect_fake_mode"]


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode of fake tensors that arguments belong to, else the one in force, else None."""
    fakes = (x for x in tree_iter(inputs) if isinstance(x, FakeTensor))
    return next((x.fake_mode for x in fakes), None) or active_fake_mode()


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
