"""Replaces the places of a graph that look like a pattern."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.fx._symbolic_trace import symbolic_trace
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _assign_attr, _has_attr
from taeda.fx.node import Node
from taeda.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the pattern's last node, and the graph's node for every node of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclasses.dataclass
class ReplacedPatterns:
    """A place that was replaced, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace every place of a module's graph that looks like a pattern.

    Args:
        gm: The module; changed, and compiled anew.
        pattern: A function, module, graph module or graph; its arguments match anything.
        replacement: The same, with as many arguments and results.

    Returns:
        The places.

    Example:
        >>> net = taeda.fx.symbolic_trace(lambda x: taeda.relu(x) * 2)
        >>> found = taeda.fx.replace_pattern(net, lambda a: taeda.relu(a), lambda a: taeda.tanh(a))
        >>> len(found)
        1
    """
    done = _replace(gm, pattern, replacement)
    return [Match(item.anchor, item.nodes_map) for item in done]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern` for the places that all filters let through.

    Args:
        gm: The module.
        pattern: What is looked for.
        replacement: What stands there then.
        match_filters: Each gets the place, the graph and the pattern's graph, and says whether it counts.
        ignore_literals: Numbers and texts among the arguments match any others.
        replacement_callback: Makes the replacement of one place, given the same as filters.
        node_name_match: Only places whose last node has this name.
    """
    return _replace(
        gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(program: Any) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    filters: Any = (),
    ignore_literals: bool = False,
    callback: Any = None,
    name: str = "",
) -> list[ReplacedPatterns]:
    pattern_graph = _graph_of(pattern)
    graph = gm.graph
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=name)
        if all(keep(match, graph, pattern_graph) for keep in filters)
    ]
    shared = None if callback is not None else _graph_of(replacement)
    renamed: dict[Node, Node] = {}
    done = []
    for match in matches:
        new = callback(match, graph, pattern_graph) if callback is not None else shared
        done.append(_replace_one(graph, pattern_graph, new, match, renamed))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_attributes(gm, replacement)
    return done


def _replace_one(
    graph: Graph, pattern: Graph, new: Graph, match: InternalMatch, renamed: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [node for node in new.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"the replacement has {len(inputs)} arguments and the pattern {len(match.placeholder_nodes)}"
        )
    values: dict[Node, Any] = {
        mine: renamed.get(theirs, theirs) if isinstance(theirs, Node) else theirs
        for mine, theirs in zip(inputs, match.placeholder_nodes, strict=True)
    }
    leaving = [renamed.get(node, node) for node in match.returning_nodes]
    users = {user for node in leaving for user in node.users}
    last = next((node for node in graph.nodes if node in users), None)
    if not users:
        last = leaving[-1].next
    before = set(graph.nodes)
    with graph.inserting_before(last):
        result = graph.graph_copy(new, values)
    made = [node for node in graph.nodes if node not in before]
    results = [result] if isinstance(result, Node) else list(result)
    if len(results) != len(leaving):
        raise AssertionError(f"the replacement has {len(results)} results and the pattern {len(leaving)}")
    for old, item in zip(leaving, results, strict=True):
        old.replace_all_uses_with(item)
        renamed[old] = item
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _take_attributes(gm: GraphModule, replacement: Any) -> None:
    """Let the module have what its new nodes name, and no longer what none names."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _has_attr(gm, node.target):
            continue
        value: Any = replacement
        for part in node.target.split("."):
            value = getattr(value, part, None)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        _assign_attr(copy.deepcopy(value), gm, node.target)
    gm.graph.lint()
