"""Notes that nodes are given while graphs are made."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_F = TypeVar("_F", bound="Callable[..., Any]")

__all__ = [
    "NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
    "has_preserved_node_meta", "preserve_node_meta", "reset_grad_fn_seq_nr", "set_current_meta",
    "set_grad_fn_seq_nr", "set_stack_trace",
]  # fmt: skip


class NodeSourceAction(enum.Enum):
    """What a pass over a graph has done to a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: another node, or a graph, and what a pass has done.

    Args:
        node: The node; None for a graph.
        pass_name: Name of the pass.
        action: One of `NodeSourceAction`, or several.
    """

    class NodeInfo:
        """What names the node.

        Args:
            name, target: Its own.
            graph_id: Which graph it is in.
        """

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Any, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        self.action = list(action) if isinstance(action, list) else [] if action is None else [action]
        if not all(isinstance(item, NodeSourceAction) for item in self.action):
            raise AssertionError(f"NodeSource: argument 'action' is {action!r}, expected NodeSourceAction")
        self.node_info = node and NodeSource.NodeInfo(node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    @property
    def name(self) -> str:
        """Name of the node; empty for a graph."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """What the node calls; empty for a graph."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """Which graph the node is in; -1 for a graph."""
        return self.node_info.graph_id if self.node_info else -1

    def _actions(self) -> str:
        return "+".join(item.name.lower() for item in self.action)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "name": self.name, "target": self.target, "graph_id": self.graph_id, "pass_name": self.pass_name,
            "action": self._actions(), "from_node": [item.to_dict() for item in self.from_node],
        }  # fmt: skip

    def print_readable(self, indent: int = 0) -> str:
        """A line for it and for each that it comes from, ten at most."""
        if indent > 9:
            return ""
        facts = f"name={self.name}, pass_name={self.pass_name}, action={self._actions()}, graph_id={self.graph_id}"
        return (
            " " * indent * 4 + f"({facts})\n" + "".join(n.print_readable(indent + 1) for n in self.from_node)
        )

    __repr__ = print_readable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.print_readable())


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


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[_F], _F]:
    """A decorator of functions whose calls run in a block of `annotate`.

    Example:
        >>> @taeda.fx.traceback.annotate_fn({"stage": 1})
        ... def encode(x):
        ...     return x.relu()
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]

    return decorate


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
