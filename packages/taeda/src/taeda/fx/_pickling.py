"""Graphs as plain data, for pickles."""

from __future__ import annotations

from typing import Any

from taeda.fx._names import is_public, qualified_name
from taeda.fx.graph import Graph
from taeda.fx.node import Node, map_aggregate, map_arg

__all__ = ["described", "rebuilt"]


class _Ref:
    """A node by its place."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Public:
    """A function of taeda by its name, which other versions have too."""

    def __init__(self, name: str) -> None:
        self.name = name


def described(graph: Graph) -> list[tuple[Any, ...]]:
    """The nodes of a graph, each as (kind, target, arguments, arguments by name, name, type, whether it is wrapped)."""
    places: dict[Node, _Ref] = {}
    found = []
    for index, node in enumerate(graph.nodes):
        target = node.target
        if node.op == "call_function" and is_public(target):
            target = _Public(qualified_name(target))
        args, kwargs = (map_arg(part, places.__getitem__) for part in (node.args, node.kwargs))
        wrapped = bool(node.meta.get("is_wrapped"))
        found.append((node.op, target, args, kwargs, node.name, node.type, wrapped))
        places[node] = _Ref(index)
    return found


def rebuilt(nodes: list[tuple[Any, ...]]) -> Graph:
    """The graph that was described."""
    graph = Graph()
    made: list[Node] = []

    def value(item: Any) -> Any:
        return made[item.index] if isinstance(item, _Ref) else item

    for op, target, args, kwargs, name, kind, *wrapped in nodes:  # older descriptions end with the type
        called = _found(target.name) if isinstance(target, _Public) else target
        made.append(
            graph.create_node(
                op, called, map_aggregate(args, value), map_aggregate(kwargs, value), name, kind
            )
        )
        if any(wrapped):
            made[-1].meta["is_wrapped"] = True
        if op == "placeholder" and made[-1].name != name:  # the name of a builtin function
            graph._graph_namespace._rename_object(made[-1], name)
            made[-1].name = name
    return graph


def _found(name: str) -> Any:
    import taeda

    value: Any = taeda
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value
