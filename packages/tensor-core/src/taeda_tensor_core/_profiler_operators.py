"""`ops.profiler`: the beginning and the end of a marked block as two calls, which older programs make."""

from __future__ import annotations

from typing import Any


def _record_function_enter(name: str, args: str | None = None) -> Any:
    """Begin a block of that name, which the profiler of the slot shows; the result is given to its end.

    Example:
        >>> block = taeda.ops.profiler._record_function_enter("forward")
        >>> taeda.ops.profiler._record_function_exit(block)
    """
    from taeda_registry.resolution import resolve

    block = resolve("profiler").record_function(name, args)
    block.__enter__()
    return block


def _record_function_exit(handle: Any) -> None:
    """End a block.

    Raises:
        TypeError: It is none.
    """
    if not hasattr(handle, "__exit__"):
        raise TypeError(
            f"_record_function_exit: expected what _record_function_enter gives, found {type(handle).__name__}"
        )
    handle.__exit__(None, None, None)


_record_function_enter_new = _record_function_enter
# The overloads of PyTorch's, by which programs call them too.
_record_function_enter_new.default = _record_function_enter  # type: ignore[attr-defined]
_record_function_exit.default = _record_function_exit._RecordFunction = _record_function_exit  # type: ignore[attr-defined]
