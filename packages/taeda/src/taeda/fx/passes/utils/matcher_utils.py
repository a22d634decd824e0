"""Finds the places of a graph that look like another graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import _get_attr
from taeda.fx.node import Node
from taeda_registry.slots import tensor

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclasses.dataclass
class InternalMatch:
    """One place.

    Attributes:
        anchors: Nodes of the pattern whose results leave it.
        nodes_map: The graph's node for every node of the pattern.
        placeholder_nodes: The graph's nodes for the pattern's inputs.
        returning_nodes: The graph's nodes for the pattern's results.
        name_node_map: The graph's nodes by the names that a pattern gives them.
        other_nodes_map: Nodes of the pattern that stand for other values than nodes, and these.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Node] = dataclasses.field(default_factory=dict)
    placeholder_nodes: list[Node] = dataclasses.field(default_factory=list)
    returning_nodes: list[Node] = dataclasses.field(default_factory=list)
    name_node_map: dict[str, Node] = dataclasses.field(default_factory=dict)
    other_nodes_map: dict[Node, Any] = dataclasses.field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            dict(self.nodes_map),
            list(self.placeholder_nodes),
            list(self.returning_nodes),
            dict(self.name_node_map),
            dict(self.other_nodes_map),
        )


class SubgraphMatcher:
    """Finds the places of a graph that look like a pattern.

    Args:
        pattern: A graph; its inputs match anything.
        match_output: The pattern's output must match the graph's.
        match_placeholder: Its inputs match inputs only.
        remove_overlapping_matches: A node belongs to one place at most.
        ignore_literals: Numbers and texts among the arguments match any others.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op not in ("placeholder", "output") and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with a pattern with dead code")
        end = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = end.all_input_nodes
        self.pattern_anchors = (
            [end] if match_output else [n for n in end.all_input_nodes if len(n.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places, in the order of the graph.

        Args:
            graph: The graph that is looked through.
            node_name_match: Of nodes that match otherwise, only those with this name.
        """
        candidates = [
            [node for node in graph.nodes if self._alike(anchor, node) and node_name_match in ("", node.name)]
            for anchor in self.pattern_anchors
        ]
        found = [InternalMatch(list(self.pattern_anchors))]
        for anchor, nodes in zip(self.pattern_anchors, candidates, strict=True):
            grown = []
            for match in found:
                for node in nodes:
                    trial = match.__copy__()
                    if self._match(anchor, node, trial):
                        grown.append(trial)
            found = grown
        if not self.pattern_anchors:
            return []
        found = [self._completed(match) for match in found if self._contained(match)]
        return self._apart(found) if self.remove_overlapping_matches else found

    def _completed(self, match: InternalMatch) -> InternalMatch:
        everything: dict[Node, Any] = {**match.nodes_map, **match.other_nodes_map}
        match.placeholder_nodes = [
            everything.get(n) for n in self.pattern_placeholder_nodes if n in everything
        ]
        match.returning_nodes = [match.nodes_map[n] for n in self.pattern_returning_nodes]
        match.nodes_map.update(match.other_nodes_map)  # an input of the pattern may be a number in the graph
        return match

    def _contained(self, match: InternalMatch) -> bool:
        """Whether nobody outside uses what is computed inside."""
        inside = {g for p, g in match.nodes_map.items() if p.op != "placeholder"}
        leaving = set(self.pattern_returning_nodes)
        return all(
            user in inside
            for p, g in match.nodes_map.items()
            if p.op not in ("placeholder", "output") and p not in leaving
            for user in g.users
        )

    @staticmethod
    def _apart(matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept = []
        for match in matches:
            own = {g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")}
            if not own & taken:
                taken |= own
                kept.append(match)
        return kept

    # --- one node ---

    def _alike(self, pattern: Node, node: Node) -> bool:
        if not self.match_placeholder and pattern.op == "placeholder":
            return True
        if pattern.op != node.op:
            return False
        if pattern.op in ("placeholder", "output"):
            return True
        if pattern.op == "get_attr":
            return self._same_attribute(pattern, node)
        if pattern.op == "call_module":
            return self._same_module(pattern, node)
        return bool(pattern.target == node.target)

    @staticmethod
    def _same_attribute(pattern: Node, node: Node) -> bool:
        owners = pattern.graph.owning_module, node.graph.owning_module
        if None in owners:
            return bool(pattern.target == node.target)
        left, right = _get_attr(owners[0], pattern.target), _get_attr(owners[1], node.target)
        return isinstance(left, tensor.Tensor) == isinstance(right, tensor.Tensor)

    @staticmethod
    def _same_module(pattern: Node, node: Node) -> bool:
        return bool(pattern.target == node.target)

    def _match(self, pattern: Node, node: Node, match: InternalMatch) -> bool:
        if pattern in match.nodes_map:
            return match.nodes_map[pattern] is node
        if node in match.nodes_map.values() and pattern.op != "placeholder":
            return False
        if not self._alike(pattern, node):
            return False
        match.nodes_map[pattern] = node
        if pattern.op == "placeholder":
            return True
        matched = self._match_arguments(pattern, node, match)
        if not matched:
            match.nodes_map.pop(pattern, None)
        return matched

    def _match_arguments(self, pattern: Node, node: Node, match: InternalMatch) -> bool:
        left, right = _given(pattern), _given(node)
        if len(left[0]) != len(right[0]) or left[1].keys() != right[1].keys():
            named = _by_name(pattern), _by_name(node)
            if named[0] is None or named[1] is None or named[0].keys() != named[1].keys():
                return False
            left, right = ([], named[0]), ([], named[1])
        return self._match_tree(left[0], right[0], match) and self._match_tree(left[1], right[1], match)

    def _match_tree(self, p: Any, g: Any, match: InternalMatch) -> bool:
        if isinstance(p, dict) and isinstance(g, dict):
            return p.keys() == g.keys() and all(self._match_tree(p[key], g[key], match) for key in p)
        if isinstance(p, list) and isinstance(g, list):
            return len(p) == len(g) and all(self._match_tree(*pair, match) for pair in zip(p, g, strict=True))
        return self._match_value(p, g, match)

    def _match_value(self, p: Any, g: Any, match: InternalMatch) -> bool:
        if isinstance(p, Node) and isinstance(g, Node):
            return self._match(p, g, match)
        if isinstance(p, Node):
            if p.op != "placeholder":
                return False
            if p in match.other_nodes_map:
                return bool(match.other_nodes_map[p] == g)
            match.other_nodes_map[p] = g
            return True
        if isinstance(g, Node):
            return False
        return self.ignore_literals or (type(p) is type(g) and bool(p == g))


def _given(node: Node) -> tuple[list[Any], dict[str, Any]]:
    """A node's arguments in order and by name; tuples are lists."""
    return _plain(node.args), _plain(dict(sorted(node.kwargs.items())))


def _plain(a: Any) -> Any:
    if isinstance(a, (tuple, list)):
        return [_plain(item) for item in a]
    return {key: _plain(value) for key, value in a.items()} if isinstance(a, dict) else a


def _by_name(node: Node) -> dict[str, Any] | None:
    """All arguments by name, as the function or the operator has them; None where that is not known."""
    from taeda.fx import operator_schemas

    if node.op != "call_function":
        return None
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        known = {a.name: a.default for a in schema.arguments if a.has_default}
        places = [a.name for a in schema.arguments if not a.keyword_only]
        given = {**dict(zip(places, node.args, strict=False)), **node.kwargs}
        return _plain({**known, **given})  # type: ignore[no-any-return]
    try:
        found = operator_schemas.normalize_function(
            node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True
        )
    except RuntimeError:  # several signatures fit
        return None
    return None if found is None else _plain(dict(sorted(found.kwargs.items())))  # type: ignore[no-any-return]
