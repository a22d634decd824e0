"""Notes that nodes are given while graphs are made."""

from __future__ import annotations

import contextlib
import copy
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "annotate", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta",
    "reset_grad_fn_seq_nr", "set_current_meta", "set_grad_fn_seq_nr", "set_stack_trace",
]  # fmt: skip

_current: dict[str, Any] = {}
_preserving = [False]


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which new nodes get the notes that are current."""
    before, notes = _preserving[0], dict(_current)
    _preserving[0] = enable
    try:
        yield
    finally:
        _preserving[0] = before
        _current.clear()
        _current.update(notes)


def has_preserved_node_meta() -> bool:
    """Whether new nodes get the notes that are current."""
    return _preserving[0]


def get_current_meta() -> dict[str, Any]:
    """The notes that are current."""
    return _current


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block in which the notes of a node are current."""
    before = dict(_current)
    if _preserving[0] and node.meta:
        _current.clear()
        _current.update(copy.copy(node.meta))
    try:
        yield
    finally:
        _current.clear()
        _current.update(before)


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block whose nodes are noted, under "custom", as the given dict says."""
    before = dict(_current)
    _current["custom"] = {**_current.get("custom", {}), **annotation_dict}
    try:
        yield
    finally:
        _current.clear()
        _current.update(before)


def set_stack_trace(stack: list[str]) -> None:
    """Make a place of the program current."""
    if _preserving[0] and stack:
        _current["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note the number of a step of the backward pass."""
    if _preserving[0]:
        _current.setdefault("grad_fn_seq_nr", []).append(seq_nr)


def reset_grad_fn_seq_nr() -> None:
    """Take back the last such number."""
    numbers = _current.get("grad_fn_seq_nr")
    if numbers:
        numbers.pop()


def format_stack() -> list[str]:
    """Where the program is, or what the current notes say of it."""
    if _preserving[0] and "stack_trace" in _current:
        return [_current["stack_trace"]]
    return traceback.format_list(traceback.extract_stack()[:-1])
