"""Containers taken apart as a form says, for programs that graphs are written as."""

from __future__ import annotations

from typing import Any

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """The parts of a container at the leaves of a form, as a list.

    Args:
        pytree: A container of that form; a list counts as the tuple of a function's arguments.
        spec: The form.
    """
    return list(spec.flatten_up_to(tuple(pytree) if spec.type is tuple else pytree))
