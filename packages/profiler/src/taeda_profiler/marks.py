"""Marks of programs: names for blocks and functions."""

from __future__ import annotations

import functools
from typing import Any

from taeda_profiler import _C, _recorder

__all__ = ["emit_itt", "emit_nvtx", "record_function"]


class record_function:
    """A block, or a function, with a name for a profiler.

    Nothing is recorded where no profiler runs.

    Args:
        name: The name.
        args: More about it; it stands in traces beside the name.

    Raises:
        TypeError: `name` or `args` is no text.

    Example:
        >>> with taeda.profiler.record_function("step"):
        ...     loss.backward()
    """

    __slots__ = ("__dict__", "_kind", "_open", "args", "name")

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str) or not isinstance(args, str | None):
            raise TypeError(
                f"record_function: arguments 'name' and 'args' must be texts, "
                f"found {type(name).__name__} and {type(args).__name__}"
            )
        self.name, self.args = name, args
        self._kind = _recorder.USER
        self._open = False

    def __enter__(self) -> record_function:
        _C.span_begin(self.name, self._kind)
        return self

    def __exit__(self, *exception: object) -> None:
        _C.span_end(self.name, self._kind)

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


class _Emit:
    """A block whose events are to go to a vendor's profiler. There is none for the host, so the block just runs."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class emit_nvtx(_Emit):
    """Accepted for programs that run under NVIDIA's profilers; without one it is the block that it stands around."""


class emit_itt(_Emit):
    """Accepted for programs that run under Intel's profilers; without one it is the block that it stands around."""
