"""Where a program is in native code."""

from __future__ import annotations

from taeda import _absent

__all__ = ["get_cpp_backtrace"]

get_cpp_backtrace = _absent.function(
    "taeda.utils.get_cpp_backtrace", "native frames are not recorded; use a debugger"
)
