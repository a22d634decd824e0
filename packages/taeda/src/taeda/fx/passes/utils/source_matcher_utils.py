"""Which nodes of an exported program come from the same call of a function or layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from taeda.fx._notes import class_name
from taeda.fx.graph import Graph
from taeda.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call.

    Attributes:
        nodes: The nodes, in the graph's order.
        source: The function or class of layers that was called.
        input_nodes: What they use of others; what the graph reads from its module is left out.
        output_nodes: Those of them that others use.
        params: Those of them that read from the graph's module.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _class_is(found: Any, wanted: Any) -> bool:
    """Whether a layer's class, or its name, is the wanted one; classes also when they are derived from it."""
    if isinstance(found, type) and isinstance(wanted, type):
        return issubclass(found, wanted)
    return bool(found == (class_name(wanted) if isinstance(wanted, type) else wanted))


def _source(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """What was called, and a name for that call; None where nobody wants to know."""
    if (calls := node.meta.get("source_fn_stack")) is not None:
        name, called = calls[-1]
        return (called, name) if called in wanted else None
    if (known := node.meta.get("torch_fn")) is not None:
        name, function = known[0], known[1].split(".")[1]
        if function in wanted:
            return function, name
    layers = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not layers:
        return None
    path, layer = list(layers.values())[-1]
    return next(((source, path) for source in wanted if _class_is(layer, source)), None)


def _others(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        for given in node.args:
            if isinstance(given, Node) and given not in nodes and given.op != "get_attr":
                yield given


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    read = [node for node in nodes if node.op == "get_attr"]
    used = [n for n in nodes if n not in read and any(user not in nodes for user in n.users)]
    return SourcePartition(nodes, source, list(dict.fromkeys(_others(nodes))), used, read)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The calls of some functions and layers in a graph of operators.

    Args:
        graph: Of an exported program, whose nodes tell in `meta` where they come from.
        wanted_sources: Functions, names of functions, and classes of layers.
        filter_fn: A call is left out where this is false of one of its nodes.

    Returns:
        By what was called: its calls. What was not called is not there.

    Example:
        >>> layer = taeda.nn.Linear(2, 3)
        >>> program = taeda.export.export(layer, (taeda.ones(1, 2),)).module()
        >>> [found] = get_source_partitions(program.graph, ["linear"])["linear"]
        >>> found.nodes, found.input_nodes
        ([linear], [input_1])
    """
    calls: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        if (found := _source(node, wanted_sources)) is not None:
            calls.setdefault(found[0], {}).setdefault(found[1], []).append(node)
    return {
        source: [
            _partition(nodes, source)
            for nodes in by_name.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, by_name in calls.items()
    }


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a node of the second uses one of the first."""
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
