"""PyTorch's choice between two ways of sharing; here there is one, which has the advantages of both."""

from __future__ import annotations

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

_ALL = ("file_descriptor", "file_system")
_current = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_ALL)


def get_sharing_strategy() -> str:
    """The name that was set last."""
    return _current


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted as in PyTorch, without effect.

    Tensors are shared through memory files without names that are opened once for each pair of processes, under
    either name: neither descriptors nor names in /dev/shm can run out.

    Raises:
        ValueError: Neither "file_descriptor" nor "file_system".

    Example:
        >>> mp.set_sharing_strategy("file_system")
    """
    global _current
    if new_strategy not in _ALL:
        raise ValueError(
            f"set_sharing_strategy: argument 'new_strategy' must be one of {', '.join(_ALL)}, found {new_strategy!r}"
        )
    _current = new_strategy
