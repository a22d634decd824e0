"""Bases of passes that programs hand to a code generator."""

from __future__ import annotations

import abc
import hashlib
from typing import Any

__all__ = ["CustomGraphModulePass", "CustomGraphPass", "get_hash_for_files"]


class CustomGraphPass(abc.ABC):
    """A pass over a graph; nothing here calls it."""

    @abc.abstractmethod
    def __call__(self, graph: Any) -> None:
        """Change the graph."""

    @abc.abstractmethod
    def uuid(self) -> Any:
        """What tells this pass from others, or None."""


class CustomGraphModulePass(CustomGraphPass):
    """A pass over a graph module; nothing here calls it."""


def get_hash_for_files(paths: tuple[str, ...], extra: str = "") -> bytes:
    """A hash of files and a text."""
    found = hashlib.sha256(extra.encode())
    for path in paths:
        with open(path, "rb") as file:
            found.update(path.encode() + file.read())
    return found.digest()
