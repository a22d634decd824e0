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

    def __copy__(self) -> RemovableHandle:
        """A handle of the same hook."""
        same = type(self).__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    def __getstate__(self) -> int:
        """The number alone: hooks are not stored with what they stand on."""
        return self.id

    def __setstate__(self, number: int) -> None:
        self._owner, self._remove, self.id = _gone, _take_nothing, number

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def _gone() -> None:
    """The owner of a handle that was stored."""


def _take_nothing(_owner: Any, _number: int) -> None:
    """What such a handle removes."""


def _strong_types() -> tuple[type, ...]:
    from taeda_autograd import _C

    return (_C.Node,)
