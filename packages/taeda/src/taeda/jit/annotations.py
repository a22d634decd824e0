"""Annotations that scripts use."""

from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035 (programs import them from here)


class _Broadcasting:
    """A number that stands for a list of equal ones: `BroadcastingList2[int]` means an int or two of them."""

    def __class_getitem__(cls, item: object) -> object:
        return Union[item, List[item]]  # type: ignore[valid-type]  # noqa: UP006, UP007


class BroadcastingList1(_Broadcasting):
    """One, or a list of one."""


class BroadcastingList2(_Broadcasting):
    """One, or a list of two."""


class BroadcastingList3(_Broadcasting):
    """One, or a list of three."""


__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
]
