"""Marks for a profiler. Until one is installed they are the blocks that they stand around."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["emit_nvtx", "profile", "record_function"]


class record_function:
    """A block, or a function, with a name for a profiler.

    Args:
        name: The name.
        args: More about it.

    Example:
        >>> with taeda.autograd.profiler.record_function("step"):
        ...     loss.backward()
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return inside


class profile:
    """A profiler is not there yet; with `enabled=False` it is the block that it stands around.

    Raises:
        NotImplementedError: It is to be enabled.
    """

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        if enabled:
            raise NotImplementedError("profile: there is no profiler yet; time with time.perf_counter")
        self.enabled = False

    def __enter__(self) -> profile:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class emit_nvtx(profile):
    """Marks for a vendor's profiler, which is not there; see `profile`."""
