"""Whether a program goes the way of its graph with inputs of other sizes, or took a size for a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.fx import GraphModule
from taeda.fx._record import SizeDecidedError, holds
from taeda.fx.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SameWay", "SizeTakenError"]


class SizeTakenError(Exception):
    """A size is a number in the graph, where other sizes of the input make it another one."""


class SameWay:
    """Asks a program again what it does.

    Args:
        program: The graph of the example.
        again: The graph that the program has with other inputs; None where it has none.
        example: The inputs of the example.
    """

    def __init__(
        self, program: GraphModule, again: Callable[[list[Any]], GraphModule | None], example: list[Any]
    ) -> None:
        self._program, self._again, self._example = program, again, example
        self._steady: bool | None = None

    def check(self, inputs: list[Any]) -> None:
        """Run the program with these inputs.

        Raises:
            SizeDecidedError: It takes another way.
            SizeTakenError: It has other numbers, or other calls.
            Exception: What the program raises.
        """
        if self._steady is False:
            return
        try:
            other = self._again(inputs)
        except Exception:  # of a program that never runs twice alike it says nothing about the sizes
            if self._is_steady():
                raise
            return
        found = None if other is None else _difference(self._program, other)
        if found is None or not self._is_steady():
            return
        if any(node is not None and node.target is holds for node in found):
            raise SizeDecidedError(f"the program goes on by {found[0]}")
        raise SizeTakenError(f"the program's step {found[0]} is another with another size")

    def _is_steady(self) -> bool:
        """Whether it does the same when it runs twice; programs that count their calls do not."""
        if self._steady is None:
            try:
                second = self._again(self._example)
                self._steady = second is not None and _difference(self._program, second) is None
            except Exception:  # whatever a program raises in a second run
                self._steady = False
        return self._steady


def _difference(first: GraphModule, second: GraphModule) -> tuple[Node | None, Node | None] | None:
    """The first nodes in which two graphs differ; None where they do not."""
    known: dict[Node, Node] = {}
    left, right = iter(first.graph.nodes), iter(second.graph.nodes)
    while True:
        one, other = next(left, None), next(right, None)
        if one is None and other is None:
            return None
        if one is None or other is None or not _alike(one, other, known, (first, second)):
            return one, other
        known[one] = other


def _alike(one: Node, other: Node, known: dict[Node, Node], homes: tuple[GraphModule, GraphModule]) -> bool:
    if one.op != other.op or one.target != other.target:
        return False
    if one.op == "get_attr":
        parts = [home._modules.get(str(one.target)) for home in homes]
        if all(isinstance(part, GraphModule) for part in parts) and _difference(*parts) is not None:  # type: ignore[arg-type]
            return False
    return _equal(one.args, other.args, known) and _equal(one.kwargs, other.kwargs, known)


def _equal(one: Any, other: Any, known: dict[Node, Node]) -> bool:
    """Whether arguments of two nodes are the same."""
    if isinstance(one, Node):
        return known.get(one) is other
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(_equal(*pair, known) for pair in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key], known) for key in one)
    if isinstance(one, slice):
        ends = [(part.start, part.stop, part.step) for part in (one, other)]
        return _equal(*ends, known)
    return bool(one == other) or (one != one and other != other)  # not-a-number is not itself
