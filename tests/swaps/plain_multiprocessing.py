"""Stand-in provider of slot ``multiprocessing``: Python's own, whose tensors travel as bytes."""

import multiprocessing
from multiprocessing import get_context, get_start_method, set_start_method
from typing import Any

__taeda_interface__ = {"multiprocessing": "1.0"}
__all__ = ["get_context", "get_start_method", "set_start_method"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(multiprocessing, name)
