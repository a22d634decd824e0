"""A context that code written for a compiler enters."""

from __future__ import annotations

from contextlib import AbstractContextManager

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(AbstractContextManager):
    """Context in which tensors can be indexed with tensors of one element under vmap; here they always can."""

    def __exit__(self, *exception: object) -> None:
        pass
