"""A set that keeps the order in which its items came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """A set whose items stand in the order in which they were added first.

    Args:
        iterable: The items.

    Example:
        >>> from taeda.utils._ordered_set import OrderedSet
        >>> list(OrderedSet([3, 1]) | {2})
        [3, 1, 2]
    """

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict = dict.fromkeys(iterable or ())

    def __contains__(self, item: object) -> bool:
        return item in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, value: T) -> None:
        """Add an item at the end, if it is not there."""
        self._dict[value] = None

    def discard(self, value: T) -> None:
        """Remove an item, if it is there."""
        self._dict.pop(value, None)

    def clear(self) -> None:
        """Remove all items."""
        self._dict.clear()

    def pop(self) -> T:
        """Remove and give the last item.

        Raises:
            KeyError: There is none.
        """
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """A set of the same items."""
        return type(self)(self)

    def update(self, *others: Iterable[T]) -> None:
        """Add the items of others."""
        for other in others:
            self |= other  # type: ignore[arg-type, misc]

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The items of all."""
        made = self.copy()
        made.update(*others)
        return made

    def difference(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The items that no other has."""
        without = {item for other in others for item in other}
        return type(self)(item for item in self if item not in without)

    def intersection(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The items that all others have."""
        kept = [set(other) for other in others]
        return type(self)(item for item in self if all(item in other for other in kept))

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether another has all items."""
        return set(self) <= set(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether all items of another are here."""
        return set(self) >= set(other)
