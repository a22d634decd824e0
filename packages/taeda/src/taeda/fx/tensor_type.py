"""Types of tensors by shape, for annotations of graphs."""

from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """A size or type that is not known."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


class TensorType:
    """A tensor of a shape; sizes may be `Dyn`.

    Args:
        dim: The shape.
    """

    def __init__(self, dim: Any) -> None:
        self.__origin__, self.__args__ = TensorType, dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


def _fits(t1: Any, t2: Any, known: Any) -> bool:
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        same = len(t1.__args__) == len(t2.__args__)
        return same and all(known(a, b) for a, b in zip(t1.__args__, t2.__args__, strict=True))
    return False


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether two types can be those of one value."""
    return Dyn in (t1, t2) or t1 == t2 or _fits(t1, t2, is_consistent)


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether a type says at least as much as another."""
    return t1 == t2 or t2 == Dyn or _fits(t1, t2, is_more_precise)
