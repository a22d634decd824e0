"""Python's multiprocessing, name for name, with tensors in shared memory.

Importing it teaches Python's own queues, pipes, pools and processes to send tensors as handles of shared memory.
Names that are not defined here are those of ``multiprocessing``.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from typing import Any

from taeda_multiprocessing import reductions
from taeda_multiprocessing._spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from taeda_multiprocessing._strategy import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    set_sharing_strategy,
)
from taeda_multiprocessing.queues import get_context

__version__ = "0.1.0"
__taeda_interface__ = {"multiprocessing": "1.0"}

__all__ = [*_multiprocessing.__all__]  # noqa: PLE0604 (strings, which the linter cannot see)
__all__ += [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_context",
    "get_sharing_strategy",
    "reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def Queue(maxsize: int = 0) -> Any:
    """A queue of processes; tensors that are put become shared."""
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> Any:
    """The same with ``task_done`` and ``join``."""
    return get_context().JoinableQueue(maxsize)


def Pool(
    processes: int | None = None,
    initializer: Any = None,
    initargs: Any = (),
    maxtasksperchild: int | None = None,
) -> Any:
    """A pool of processes; tensors among its arguments become shared."""
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


def __getattr__(name: str) -> object:
    """What Python's package has beside its ``__all__``: its submodules, imported on demand."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_multiprocessing, name)
    except AttributeError:
        from importlib import import_module
        from importlib.util import find_spec

        # Names with dots are asked for by programs that guess; of such ones Python would import the parent.
        if not name.isidentifier() or find_spec(f"multiprocessing.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return import_module(f"multiprocessing.{name}")


reductions.init_reductions()
