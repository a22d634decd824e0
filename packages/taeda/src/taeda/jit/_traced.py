"""Graphs of traces: graphs of `taeda.fx`, which programs also read as PyTorch's tracer gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.fx import Graph
from taeda.fx.graph import _node_list
from taeda.jit import _graphs
from taeda.utils._pytree import tree_map
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Like(NamedTuple):
    """A tensor without its elements."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any

    @classmethod
    def of(cls, value: Any) -> Any:
        is_tensor = isinstance(value, tensor.Tensor)
        return cls(tuple(value.shape), value.dtype, value.device) if is_tensor else value

    @staticmethod
    def made(value: Any) -> Any:
        if not isinstance(value, _Like):
            return value
        return tensor.zeros(value.shape, dtype=value.dtype, device=value.device)


class TracedGraph(Graph):
    """The graph of a trace: one of `taeda.fx`, and by the names of PyTorch's tracer what the program called.

    ``graph.nodes`` are nodes of `taeda.fx`; ``graph.nodes()``, ``inputs()`` and the others run the program again, on
    zeros of the shapes of its inputs.

    Example:
        >>> traced = taeda.jit.trace(taeda.nn.Linear(2, 3), taeda.ones(1, 2))
        >>> [node.kind() for node in traced.graph.nodes()]
        ['aten::linear']
    """

    _program: Callable[..., Any]
    _example: tuple[tuple[Any, ...], dict[str, Any]]

    @classmethod
    def take(
        cls, graph: Graph, program: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Make the graph of a trace one of these."""
        graph.__class__ = cls
        graph._program, graph._example = program, tree_map(_Like.of, (args, kwargs))  # type: ignore[attr-defined]

    def _called(self) -> _graphs.Graph:
        args, kwargs = tree_map(_Like.made, self._example, is_leaf=lambda v: isinstance(v, _Like))
        return _graphs.trace_graph(self._program, args, kwargs)[0]

    @property
    def nodes(self) -> _Nodes:
        """The nodes in order."""
        return _Nodes(self)

    def inputs(self) -> Iterator[_graphs.Value]:
        """The tensors it was given, then parameters and buffers."""
        return self._called().inputs()

    def outputs(self) -> Iterator[_graphs.Value]:
        """The tensors of its result."""
        return self._called().outputs()

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[_graphs.Node]:
        """The nodes of one kind, such as "aten::add"."""
        return self._called().findAllNodes(kind, recurse)

    def findNode(self, kind: str, recurse: bool = True) -> _graphs.Node | None:
        """The first node of one kind."""
        return self._called().findNode(kind, recurse)


class _Nodes(_node_list):
    graph: TracedGraph

    def __call__(self) -> Iterator[_graphs.Node]:
        """What the program called."""
        return self.graph._called().nodes()
