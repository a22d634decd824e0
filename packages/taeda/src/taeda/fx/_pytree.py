"""Containers taken apart as a form says, for programs that graphs are written as."""

from __future__ import annotations

from typing import Any

from taeda.utils._pytree import PyTree, TreeSpec

__all__ = ["PyTree", "TreeSpec", "register_pytree_flatten_spec", "tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """The parts of a container at the leaves of a form, as a list.

    Args:
        pytree: A container of that form; a list counts as the tuple of a function's arguments.
        spec: The form.
    """
    return list(spec.flatten_up_to(tuple(pytree) if spec.type is tuple else pytree))


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Any, flatten_fn_exact_match_spec: Any = None
) -> None:
    """Nothing is to be done: containers are taken apart as `utils._pytree` was told."""
