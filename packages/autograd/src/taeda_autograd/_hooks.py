"""Handles by which hooks are taken off again."""

from __future__ import annotations

from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook off; also a context manager."""

    def __init__(self, owner: Any, remove: Callable[[Any, int], None], number: int) -> None:
        self._owner = ref(owner) if not isinstance(owner, _strong_types()) else lambda: owner
        self._remove = remove
        self.id = number

    def remove(self) -> None:
        """Take the hook off; nothing happens when it is off already or its owner is gone."""
        owner = self._owner()
        if owner is not None:
            self._remove(owner, self.id)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _strong_types() -> tuple[type, ...]:
    from taeda_autograd import _C

    return (_C.Node,)
