"""A version that is a string and compares as a version."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_RELEASE = re.compile(r"v?\s*(\d+(?:\.\d+)*)\s*[-_.]?(a|b|rc|alpha|beta|c|pre|dev)?", re.IGNORECASE)


def _key(version: Any) -> tuple[tuple[int, ...], bool]:
    """Numbers of the release without zeros at its end, and whether it is the release itself."""
    if isinstance(version, str):
        found = _RELEASE.match(version)
        if found is None:
            raise ValueError(f"TorchVersion: {version!r} is no version; expected one such as '2.1'")
        numbers = [int(part) for part in found[1].split(".")]
        final = found[2] is None
    else:
        parts = list(version)
        numbers = [int(part) for part in parts[:3] if str(part).isdigit()]
        final = all(str(part).isdigit() for part in parts[:3])
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), final


class TorchVersion(str):
    """A version as text that compares with versions, as text or as tuples of numbers; local parts count for nothing.

    Example:
        >>> taeda.__version__ >= (2, 0), taeda.__version__ < "1.10"
        (True, False)
    """

    __slots__ = ()

    def __lt__(self, other: str | Iterable[Any]) -> bool:
        return _key(str(self)) < _key(other)

    def __le__(self, other: str | Iterable[Any]) -> bool:
        return _key(str(self)) <= _key(other)

    def __gt__(self, other: str | Iterable[Any]) -> bool:
        return _key(str(self)) > _key(other)

    def __ge__(self, other: str | Iterable[Any]) -> bool:
        return _key(str(self)) >= _key(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and _RELEASE.match(other) is None:
            return False
        return isinstance(other, str | tuple | list) and _key(str(self)) == _key(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)
