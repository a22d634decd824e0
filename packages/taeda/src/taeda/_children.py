"""Lets processes that Python starts anew have the library under torch's name where the process has it that starts them.

What they are sent says names below torch, and the program may have set that name where a child does not come by.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Modules by which Python, and loky, start a process: beside each is what tells the process how to prepare itself.
STARTERS = (
    "popen_forkserver",
    "popen_loky_posix",
    "popen_loky_win32",
    "popen_spawn_posix",
    "popen_spawn_win32",
)

# Run where the preparation is read, before the program's file, with the path that the process is about to have.
_TEXT = """
import importlib.util, sys
before, sys.path[:] = sys.path[:], {path!r}
if "torch" not in sys.modules and importlib.util.find_spec("taeda") is not None:
    import taeda
    sys.modules["torch"] = taeda
sys.path[:] = before
"""


class _Name:
    """Gives the library torch's name where it is unpickled."""

    def __init__(self, path: list[str]) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return exec, (_TEXT.format(path=self._path), {})


def pass_on(starter: str) -> None:
    """Let the processes that this module starts have the name, while this process has it."""
    spawn = import_module(f"{starter.rpartition('.')[0]}.spawn")
    prepare = spawn.get_preparation_data
    if getattr(prepare, "_passes_name", False):
        return

    @functools.wraps(prepare)
    def with_name(*args: Any, **kwargs: Any) -> dict[str, Any]:
        data: dict[str, Any] = prepare(*args, **kwargs)
        if sys.modules.get("torch") is sys.modules.get("taeda"):
            data["taeda"] = _Name(list(data.get("sys_path", sys.path)))
        return data

    with_name._passes_name = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = with_name
