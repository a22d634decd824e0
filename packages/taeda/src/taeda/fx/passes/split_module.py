"""Cuts a graph into graph modules of its parts."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _copy_attr
from taeda.fx.node import Node, map_arg
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["split_module"]


class _Part:
    """The nodes of one part while it is made."""

    def __init__(self, name: Any, key: str) -> None:
        self.name, self.key = name, key
        self.graph = Graph()
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.holder = nn.Module()
        self.copies: dict[Node, Node] = {}


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    **_: Any,
) -> GraphModule:
    """A graph module whose submodules `submod_0`, `submod_1` and so on are the parts of another's graph.

    Args:
        m: The graph module.
        root_m: The module that it was traced from; not used.
        split_callback: Says of a node which part it belongs to.
        qualname_map: Filled with the paths that attributes had, by those that they have now.
        keep_original_order: Let parts stand in the order of their first nodes.
        partition_affix: Text between `submod_` and the part.

    Raises:
        RuntimeError: Parts need each other's results in both directions.
    """
    parts: dict[Any, _Part] = {}
    belongs: dict[Node, Any] = {}
    start = f"submod_{partition_affix}_" if partition_affix else "submod_"
    for node in m.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op == "get_attr":
            continue  # goes where it is used
        name = split_callback(node)
        parts.setdefault(name, _Part(name, f"{start}{name}")).nodes.append(node)
        belongs[node] = name
    _find_borders(m.graph, parts, belongs)
    for part in parts.values():
        _fill(m, part, qualname_map)
    return _joined(m, _ordered(parts, belongs))


def _find_borders(graph: Graph, parts: dict[Any, _Part], belongs: dict[Node, Any]) -> None:
    for node in graph.nodes:
        for used in node._input_nodes:
            if used.op == "get_attr":
                continue
            here, there = belongs.get(node), belongs.get(used)
            if node in belongs and (used not in belongs or here != there):
                parts[here].inputs.setdefault(used)
            if used in belongs and (node not in belongs or here != there):
                parts[there].outputs.setdefault(used)


def _fill(m: GraphModule, part: _Part, paths: dict[str, str] | None) -> None:
    def attribute(node: Node) -> Node:
        _copy_attr(m, part.holder, node.target)
        return part.graph.get_attr(node.target, node.type)

    for node in part.inputs:
        part.copies[node] = made = part.graph.placeholder(node.name, node.type)
        made.meta = node.meta.copy()
    for node in part.nodes:
        for used in node._input_nodes:
            if used.op == "get_attr" and used not in part.copies:
                part.copies[used] = attribute(used)
        if node.op == "call_module":
            _copy_attr(m, part.holder, node.target)
            if paths is not None:
                paths[f"{part.key}.{node.target}"] = node.target
        part.copies[node] = part.graph.node_copy(node, part.copies.__getitem__)
    results = tuple(part.copies[node] for node in part.outputs)
    part.graph.output(results[0] if len(results) == 1 else (results or None))


def _ordered(parts: dict[Any, _Part], belongs: dict[Node, Any]) -> list[_Part]:
    waiting = {name: {belongs[n] for n in part.inputs if n in belongs} for name, part in parts.items()}
    done: list[_Part] = []
    while waiting:
        ready = next((name for name, needs in waiting.items() if not needs & waiting.keys()), None)
        if ready is None:
            raise RuntimeError("cycle exists between partitions!")
        waiting.pop(ready)
        done.append(parts[ready])
    return done


def _joined(m: GraphModule, order: list[_Part]) -> GraphModule:
    graph, root = Graph(), nn.Module()
    values: dict[Node, Node] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = graph.node_copy(node)
    for part in order:
        root.add_module(part.key, GraphModule(part.holder, part.graph))
        called = graph.call_module(part.key, tuple(values[n] for n in part.inputs))
        outputs = list(part.outputs)
        if len(outputs) == 1:
            values[outputs[0]] = called
        else:
            for index, node in enumerate(outputs):
                values[node] = graph.call_function(operator.getitem, (called, index))
    end = m.graph.output_node()
    for used in end._input_nodes:
        if used.op == "get_attr":
            _copy_attr(m, root, used.target)
            values[used] = graph.get_attr(used.target, used.type)
    graph.output(map_arg(end.args[0], values.__getitem__), end.type)
    graph.set_codegen(m.graph._codegen)
    return GraphModule(root, graph)
