"""Finds a small program in a graph and puts another one in its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.fx._symbolic_trace import symbolic_trace
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _copy_attr
from taeda.fx.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where a pattern was found: the node of its result, and which node stands for which of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place where a pattern was found, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


@dataclass
class InternalMatch:
    """A place where a pattern was found, as filters see it."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _same(pattern: Any, found: Any, nodes: dict[Node, Any]) -> bool:
    """Whether an argument of the pattern stands for one of the graph; what stands for what is entered."""
    if isinstance(pattern, Node):
        return _same_node(pattern, found, nodes)
    if isinstance(pattern, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(pattern)
            and all(_same(a, b, nodes) for a, b in zip(pattern, found, strict=True))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(found, dict)
            and found.keys() == pattern.keys()
            and all(_same(a, found[key], nodes) for key, a in pattern.items())
        )
    return not isinstance(found, Node) and type(pattern) is type(found) and pattern == found


def _same_node(pattern: Node, found: Any, nodes: dict[Node, Any]) -> bool:
    if pattern in nodes:
        return nodes[pattern] is found
    if pattern.op == "placeholder":
        nodes[pattern] = found
        return True
    if not isinstance(found, Node) or found.op != pattern.op or found.target != pattern.target:
        return False
    if any(value is found for value in nodes.values()):
        return False
    nodes[pattern] = found
    return _same(pattern.args, found.args, nodes) and _same(pattern.kwargs, found.kwargs, nodes)


def _matches(graph: Graph, pattern: Graph) -> list[InternalMatch]:
    """The places of a pattern in a graph, no two with a node in common."""
    output = pattern.output_node()
    results = output.all_input_nodes
    anchors = [node for node in results if set(node.users) == {output}]
    if not anchors:
        return []
    found: list[InternalMatch] = []
    taken: set[Node] = set()
    for nodes in _places(list(reversed(graph.nodes)), anchors):
        inner = {pn: gn for pn, gn in nodes.items() if pn.op != "placeholder"}
        if taken.intersection(inner.values()) or not _is_closed(inner, results):
            continue
        taken.update(inner.values())
        inputs = [nodes.get(node) for node in pattern.nodes if node.op == "placeholder"]
        found.append(
            InternalMatch([nodes[a] for a in anchors], nodes, inputs, [nodes[node] for node in results])
        )
    return found


def _places(candidates: list[Node], anchors: list[Node]) -> list[dict[Node, Any]]:
    """All ways in which the anchors stand in a graph, one after the other."""
    partial: list[dict[Node, Any]] = [{}]
    for anchor in anchors:
        longer = []
        for nodes in partial:
            for candidate in candidates:
                trial = dict(nodes)
                if _same_node(anchor, candidate, trial):
                    longer.append(trial)
        partial = longer
    return partial


def _is_closed(inner: dict[Node, Any], results: list[Node]) -> bool:
    """Whether nobody outside uses what the pattern does not give back."""
    own = set(inner.values())
    return all(set(found.users) <= own for node, found in inner.items() if node not in results)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Put one program in the place of another wherever it stands in a module's graph.

    Args:
        gm: The module, which is changed.
        pattern: A function or module: what is looked for. Its inputs stand for anything.
        replacement: What is put there; it has as many inputs, and as many results.

    Returns:
        The places, as they were.

    Example:
        >>> traced = taeda.fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
        >>> found = taeda.fx.replace_pattern(traced, lambda x: taeda.relu(x), lambda x: taeda.neg(x))
        >>> traced(taeda.ones(1))
        tensor([0.])
    """
    done = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=place.anchor, nodes_map=place.nodes_map) for place in done]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """The same, where `match_filters`, called with (match, graph, pattern's graph), all agree.

    Raises:
        NotImplementedError: `ignore_literals` is asked for.
    """
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters: ignore_literals is not there")
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    new_graph = None if replacement is None else _graph_of(replacement)
    matches = [
        match
        for match in _matches(graph, pattern_graph)
        if all(keep(match, graph, pattern_graph) for keep in match_filters or ())
    ]
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        made = (
            replacement_callback(match, graph, pattern_graph)
            if replacement_callback is not None
            else new_graph
        )
        if made is None:
            raise AssertionError("Must provide either replacement or replacement_callback")
        done.append(_replace(graph, match, made, changed))
    if hasattr(replacement, "named_modules"):
        _take_members(gm, replacement, graph)
    gm.recompile()
    return done


def _replace(graph: Graph, match: InternalMatch, made: Graph, changed: dict[Node, Node]) -> ReplacedPatterns:
    inputs = [node for node in made.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"replace_pattern: the replacement has {len(inputs)} inputs, the pattern {len(match.placeholder_nodes)}"
        )
    given = [changed.get(item, item) if isinstance(item, Node) else item for item in match.placeholder_nodes]
    values: dict[Node, Any] = dict(zip(inputs, given, strict=True))
    old = [gn for pn, gn in match.nodes_map.items() if pn.op != "placeholder"]
    new_nodes = []
    with graph.inserting_before(_place_for(graph, old, given)):
        for node in made.nodes:
            if node.op in ("placeholder", "output"):
                continue
            values[node] = graph.node_copy(node, lambda n: values[n])
            new_nodes.append(values[node])
    results = made.output_node().all_input_nodes
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: the replacement has {len(results)} results, the pattern {len(match.returning_nodes)}"
        )
    for before, after in zip(match.returning_nodes, (values[node] for node in results), strict=True):
        before.replace_all_uses_with(after)
        changed[before] = after
    for node in reversed(graph.nodes):
        if node in old:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes)


def _place_for(graph: Graph, old: list[Node], given: list[Any]) -> Node:
    """The first of the old nodes that stands behind all inputs."""
    waiting = {node for node in given if isinstance(node, Node)}
    place = None
    for node in graph.nodes:
        if node in old and not waiting:
            return node
        waiting.discard(node)
        place = node if node in old else place
    if place is None:
        raise AssertionError("replace_pattern: the place is not in the graph")
    return place


def _take_members(gm: GraphModule, program: Any, graph: Graph) -> None:
    """Give the module the members of the replacement that the graph uses now."""
    gm.delete_all_unused_submodules()
    for node in graph.nodes:
        if (
            node.op in ("call_module", "get_attr")
            and not _has(gm, node.target)
            and _has(program, node.target)
        ):
            _copy_attr(program, gm, node.target)


def _has(module: Any, target: str) -> bool:
    for part in target.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
