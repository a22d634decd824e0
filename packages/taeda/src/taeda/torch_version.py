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


class Version:
    """A version by its numbers, which compares with others.

    Args:
        version: Its text, such as ``"2.1"``.

    Raises:
        ValueError: A text that is no version.

    Example:
        >>> Version("2.10") > Version("2.9"), Version("1.0").major
        (True, 1)
    """

    def __init__(self, version: str) -> None:
        self._text, self._place = str(version), _key(str(version))

    @property
    def release(self) -> tuple[int, ...]:
        """Its numbers."""
        found = _RELEASE.match(self._text)
        assert found is not None
        return tuple(int(part) for part in found[1].split("."))

    @property
    def major(self) -> int:
        """Its first number."""
        return self.release[0]

    @property
    def minor(self) -> int:
        """Its second number."""
        return self.release[1] if len(self.release) > 1 else 0

    @property
    def micro(self) -> int:
        """Its third number."""
        return self.release[2] if len(self.release) > 2 else 0

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Version({self._text!r})>"

    def __hash__(self) -> int:
        return hash(self._place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._place == other._place

    def __lt__(self, other: Version) -> bool:
        return self._place < other._place

    def __le__(self, other: Version) -> bool:
        return self._place <= other._place

    def __gt__(self, other: Version) -> bool:
        return self._place > other._place

    def __ge__(self, other: Version) -> bool:
        return self._place >= other._place


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
