"""Forks wait until no other thread is importing a part of taeda.

Parts are imported when they are first used, by whichever thread that is. A child that is forked meanwhile has the lock
of that module, which Python does not renew, but not the thread that would give it back.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from importlib import _bootstrap

# Nobody waits longer for an import, which may be waiting for the thread that forks.
_PATIENCE = 5.0
_INTERVAL = 0.001


def _importers() -> set[int]:
    """Threads that hold the lock of a module of ours, or of one with PyTorch's name."""
    locks = getattr(_bootstrap, "_module_locks", {})
    held = [reference() for name, reference in list(locks.items()) if name.startswith(("taeda", "torch"))]
    return {lock.owner for lock in held if getattr(lock, "owner", None) is not None}


def _wait_for_imports() -> None:
    end = time.monotonic() + _PATIENCE
    while (importers := _importers()) and get_ident() not in importers and time.monotonic() < end:
        time.sleep(_INTERVAL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)
