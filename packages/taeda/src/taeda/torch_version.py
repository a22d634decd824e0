"""A version that is a string and compares as a version."""

from __future__ import annotations

import functools
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


class InvalidVersion(ValueError):
    """A text that is no version."""


_PARTS = re.compile(
    r"""v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<stage>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre>\d*))?
    (?:-(?P<after>\d+)|[-_.]?(?P<has_post>post|rev|r)[-_.]?(?P<post>\d*))?
    (?:[-_.]?(?P<has_dev>dev)[-_.]?(?P<dev>\d*))?
    (?:\+(?P<local>[a-z\d]+(?:[-_.][a-z\d]+)*))?""",
    re.IGNORECASE | re.VERBOSE,
)
_STAGES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


@functools.total_ordering
class Version:
    """A version of a Python package, which compares with others as PEP 440 orders them.

    Args:
        version: Its text, such as ``"2.1rc1"``.

    Attributes:
        epoch: Of its way to count; 0 where none is named.
        release: Its numbers.
        pre: Stage ("a", "b" or "rc") and number of what comes before a release, else None.
        post: Number of what comes after a release, else None.
        dev: Number of what is being developed, else None.
        local: What follows a "+", else None.

    Raises:
        InvalidVersion: A text that is no version.

    Example:
        >>> Version("2.10") > Version("2.9"), Version("1.0").major, Version("2.0rc1") < Version("2.0")
        (True, 1, True)
    """

    def __init__(self, version: str) -> None:
        found = _PARTS.fullmatch(str(version).strip())
        if found is None:
            raise InvalidVersion(f"Version: {version!r} is no version; expected one such as '2.1'")
        stage = (found["stage"] or "").lower()
        self.epoch = int(found["epoch"] or 0)
        self.release = tuple(int(part) for part in found["release"].split("."))
        self.pre = (_STAGES.get(stage, stage), int(found["pre"] or 0)) if stage else None
        post = found["after"] or (found["post"] or "0" if found["has_post"] else None)
        self.post = None if post is None else int(post)
        self.dev = int(found["dev"] or 0) if found["has_dev"] else None
        self.local = re.sub("[-_]", ".", found["local"].lower()) if found["local"] else None

    def _key(self) -> tuple[Any, ...]:
        numbers = list(self.release)
        while numbers and numbers[-1] == 0:
            numbers.pop()
        early = self.pre is None and self.post is None and self.dev is not None
        pre = (-1,) if early else (1,) if self.pre is None else (0, *self.pre)
        dev = (1, 0) if self.dev is None else (0, self.dev)
        parts = [] if self.local is None else self.local.split(".")
        local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
        return self.epoch, tuple(numbers), pre, -1 if self.post is None else self.post, dev, local

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

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before a release."""
        return self.pre is not None or self.dev is not None

    @property
    def is_postrelease(self) -> bool:
        """Whether it comes after a release."""
        return self.post is not None

    @property
    def is_devrelease(self) -> bool:
        """Whether it is being developed."""
        return self.dev is not None

    @property
    def base_version(self) -> str:
        """The text of epoch and numbers."""
        numbers = ".".join(map(str, self.release))
        return f"{self.epoch}!{numbers}" if self.epoch else numbers

    @property
    def public(self) -> str:
        """The text without its local part."""
        pre = "" if self.pre is None else f"{self.pre[0]}{self.pre[1]}"
        post = "" if self.post is None else f".post{self.post}"
        return self.base_version + pre + post + ("" if self.dev is None else f".dev{self.dev}")

    def __str__(self) -> str:
        return self.public if self.local is None else f"{self.public}+{self.local}"

    def __repr__(self) -> str:
        return f"<Version({str(self)!r})>"

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key() if isinstance(other, Version) else NotImplemented


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
