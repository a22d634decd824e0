"""Groups of nodes as modules."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taeda.fx.node import Node

__all__ = [
    "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition",
]  # fmt: skip


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Nodes behind those among them that they need; otherwise they stay in order.

    Raises:
        RuntimeError: They need each other in a circle.
    """
    waiting, done = list(nodes), []
    inside = set(waiting)
    ready: set[Node] = set()
    while waiting:
        rest = []
        for node in waiting:
            if all(used in ready for used in node.all_input_nodes if used in inside):
                ready.add(node)
                done.append(node)
            else:
                rest.append(node)
        if len(rest) == len(waiting):
            raise RuntimeError("topo_sort: nodes wait for each other in a circle")
        waiting = rest
    return done


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nothing outside of the nodes needs them and is needed by them, so that they can be one module."""
    inside = set(partition)
    ahead = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while ahead:
        node = ahead.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            ahead += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: Sequence[Node],
    module_name: str,
    partition_lookup_table: Any = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A graph module of some nodes in their order.

    Args:
        gm: The graph module that they are part of; it stays as it is.
        nodes: Each behind those that it needs.
        module_name: The name of its class.
        always_return_tuple: Whether one result is a tuple too.

    Returns:
        The module, the nodes that it takes the results of, and those whose results it gives.

    Raises:
        AssertionError: A node of another graph, or nodes that cannot be one module.
    """
    for node in nodes:
        assert node.graph is gm.graph, f"fuse_as_graphmodule: {node} is of another graph"
    assert validate_partition(nodes), "Invalid partition, found dependency cycles"
    inside = set(nodes)
    part, values = Graph(), {}
    inputs = list(
        dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside)
    )
    for node in inputs:
        values[node] = part.placeholder(node.name)
        values[node].meta = dict(node.meta)
    for node in nodes:
        values[node] = part.node_copy(node, values.__getitem__)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    made = tuple(values[node] for node in outputs)
    part.output(made if always_return_tuple or len(made) != 1 else made[0])
    return GraphModule(gm, part, module_name), tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: Sequence[Node], orig_outputs: Sequence[Node]
) -> GraphModule:
    """Put a call of a module behind the last of some nodes, and let it give their results; they stay.

    The module stands under the name of its class.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    graph = gm.graph
    order = {node: place for place, node in enumerate(graph.nodes)}
    with graph.inserting_after(max((*orig_inputs, *orig_outputs), key=order.__getitem__)):
        call = graph.call_module(name, tuple(orig_inputs))
    (result,) = [node for node in sub_gm.graph.nodes if node.op == "output"]
    several = isinstance(result.args[0], tuple)
    place = call
    for index, node in enumerate(orig_outputs):
        new = call
        if several:
            with graph.inserting_after(place):
                new = place = graph.call_function(operator.getitem, (call, index))
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new, lambda user: user is not call)
    return gm


def erase_nodes(gm: GraphModule, nodes: Sequence[Node]) -> None:
    """Take nodes out of the graph, the last one first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: Iterable[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Put a module in the place of each of some groups of nodes; the graph module itself is changed.

    Args:
        gm: The graph module.
        partitions: Groups of nodes, or dicts of them.
        prefix: What the modules' names begin with; a number follows.
        always_return_tuple: Whether one result is a tuple too.
    """
    order = {node: place for place, node in enumerate(gm.graph.nodes)}
    for number, partition in enumerate(partitions):
        nodes = topo_sort(sorted(partition, key=order.__getitem__))
        made = fuse_as_graphmodule(gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple)
        insert_subgm(gm, *made)
        erase_nodes(gm, nodes)
    last: Any = None
    for node in topo_sort(gm.graph.nodes):
        if last is not None:
            last.append(node)
        last = node
    gm.graph.lint()
    gm.recompile()
    return gm
