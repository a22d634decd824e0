"""Blocks in which neither modes nor classes answer for operators."""

import contextlib
from collections.abc import Iterator

__all__ = ["all_same_mode", "no_dispatch"]


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Context in which operators compute with instances of dispatching classes as with plain tensors."""
    from taeda import _C

    with _C._DisableTorchDispatch():
        yield


def all_same_mode(modes: list[object]) -> bool:
    """Whether all are the first one."""
    return all(mode == modes[0] for mode in modes)
