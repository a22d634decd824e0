"""Pictures of graphs, made by the package pydot."""

from __future__ import annotations

from typing import Any

__all__ = ["FxGraphDrawer"]


class FxGraphDrawer:
    """A graph module as a graph of the package pydot.

    Args:
        graph_module: The module.
        name: Name of the picture.

    Raises:
        RuntimeError: The package pydot is not installed.
    """

    def __init__(self, graph_module: Any, name: str, ignore_getattr: bool = False, **_: Any) -> None:
        try:
            import pydot
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed; pip install pydot"
            ) from None
        self._name = name
        self._drawing = pydot.Dot(name, graph_type="digraph", rankdir="TB")
        for node in graph_module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            label = f"name={node.name}|op_code={node.op}|target={node._pretty_print_target(node.target)}"
            self._drawing.add_node(pydot.Node(node.name, shape="record", label="{" + label + "}"))
            for user in node.users:
                self._drawing.add_edge(pydot.Edge(node.name, user.name))

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The graph of pydot."""
        return self._drawing

    get_main_dot_graph = get_dot_graph
