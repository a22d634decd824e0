"""Whether functions and modules are scripted and traced, and whether what was traced is running.

PYTORCH_JIT=0 in the environment leaves functions and modules as they are.
"""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary


class EnabledProxy:
    """The switch: true while `script` and `trace` give something of their own."""

    def __init__(self) -> None:
        self.enabled = self.parse_env("PYTORCH_JIT", True, "> Using PyTorch JIT", "> PyTorch JIT DISABLED")

    def parse_env(self, name: str, default: bool, true_message: str, false_message: str) -> bool:
        """What a variable of the environment says: 0 or 1, where a second letter, v, prints the message."""
        value = os.environ.get(name)
        if value is None:
            return default
        if value.lower() not in ("0", "1", "0v", "1v"):
            raise ValueError(f"Unknown setting of {name}. Try using 0 or 1.")
        if value.lower().endswith("v"):
            print(true_message if value[0] == "1" else false_message)
        return value[0] == "1"

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()
_script_classes: dict[type, object] = {}  # classes are scripted by nobody: they run as they are
_jit_caching_layer: WeakKeyDictionary[object, object] = WeakKeyDictionary()  # and functions every time


class Following(threading.local):
    """A scope in which the Python of what was traced runs; true within, so that it takes the branches of its trace."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def __bool__(self) -> bool:
        return self.depth > 0


following = Following()


def _clear_class_state() -> None:
    """Forget the classes that were scripted."""
    _script_classes.clear()


def enable() -> None:
    """Lets `script` and `trace` give something of their own again."""
    _enabled.enabled = True


def disable() -> None:
    """Makes `script` and `trace` give what they are given."""
    _enabled.enabled = False
