"""Groups of nodes that another program can run, as modules of their own."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from taeda.fx._names import qualified_name
from taeda.fx.passes.utils.fuser_utils import fuse_by_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taeda.fx.graph_module import GraphModule
    from taeda.fx.node import Node
    from taeda.fx.passes.operator_support import OperatorSupportBase

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that belong together.

    Args:
        id: Its number.
        nodes: Its nodes.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def add_node(self, node: Node) -> None:
        """Add a node."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Finds groups of supported nodes and makes modules of them.

    Args:
        graph_module: The program.
        operator_support: Says which nodes are supported.
        allows_single_node_partition: Whether a group may have one node.
        non_compute_ops: Names of functions that are no work of their own, such as "torch.ops.aten.view".
        allowed_single_node_partition_ops: Names of functions that may be a group of their own.
        skip_horizontal_fusion: Whether only nodes that use each other's results come together.

    Example:
        >>> from taeda.fx.passes.operator_support import create_op_support
        >>> net = taeda.fx.symbolic_trace(lambda x: taeda.sin(taeda.relu(x) + 1))
        >>> known = create_op_support(lambda _, node: node.op == "call_function" and node.target is not taeda.sin)
        >>> made = CapabilityBasedPartitioner(net, known).partition_and_fuse()
        >>> [node.name for node in made.graph.nodes]
        ['x', 'fused_0', 'sin', 'output']
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = frozenset(non_compute_ops or ())
        self.allowed_single_node_partition_ops = frozenset(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_supported(self, node: Node) -> bool:
        return node.op.startswith("call_") and self.operator_support.is_node_supported(
            dict(self.graph_module.named_modules()), node
        )

    def propose_partitions(self) -> list[Partition]:
        """Groups of supported nodes that do not wait for each other in a circle, connected or not."""
        group: dict[Node, int] = {}
        members: dict[int, set[Node]] = {}
        for number, node in enumerate(reversed(list(self.graph_module.graph.nodes))):
            together = sorted(members)
            if self._is_supported(node):
                group[node], members[number] = number, {node}
                if self.skip_horizontal_fusion:
                    together = list(dict.fromkeys(group[user] for user in node.users if user in group))
                together.insert(0, number)
            elif self.skip_horizontal_fusion or not together:
                continue
            first, *others = together
            for other in others:
                both = members[first] | members[other]
                if not _waits_for_itself(both, group, members):
                    first, gone = min(first, other), max(first, other)
                    group.update(dict.fromkeys(members.pop(gone), first))
                    members[first] = both
        self._keep_parts_with_results(group, members)
        order = {node: place for place, node in enumerate(self.graph_module.graph.nodes)}
        kept = [nodes for nodes in members.values() if nodes and self._counts(nodes)]
        kept.sort(key=lambda nodes: min(order[node] for node in nodes), reverse=True)
        return [Partition(i, sorted(nodes, key=order.__getitem__)) for i, nodes in enumerate(kept)]

    def _keep_parts_with_results(self, group: dict[Node, int], members: dict[int, set[Node]]) -> None:
        """Let nodes that take items of a result be where the result is, in no group too."""
        for node in self.graph_module.graph.nodes:
            if not all(user.target is operator.getitem for user in node.users):
                continue
            for user in node.users:
                if user in group:
                    members[group.pop(user)].discard(user)
                if node in group:
                    group[user] = group[node]
                    members[group[node]].add(user)

    def _counts(self, nodes: set[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        calls = [_names(node) for node in nodes if node.op == "call_function"]
        work = sum(not names & (_NO_WORK | self.non_compute_ops) for names in calls)
        return work + sum(bool(names & self.allowed_single_node_partition_ops) for names in calls) > 1

    def _is_no_work(self, node: Node) -> bool:
        return node.op == "call_function" and bool(_names(node) & self.non_compute_ops)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take off nodes that are no work of their own where a group begins or ends with them."""
        for partition in partitions:
            changed = True
            while changed:
                inside = set(partition.nodes)
                ends = [
                    node
                    for node in inside
                    if self._is_no_work(node)
                    and (not inside.intersection(node.all_input_nodes) or not inside.intersection(node.users))
                ]
                for node in ends:
                    partition.remove_node(node)
                changed = bool(ends)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The program with a module in the place of each group; its name is the prefix and a number."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find groups and make modules of them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


#: Functions that are never work of their own.
_NO_WORK = frozenset({"torch.ops.aten.view", "_operator.getitem"})


def _names(node: Node) -> frozenset[str]:
    """What a program may call the function of a node."""
    full = qualified_name(node.target)
    return frozenset({full, full.replace("operator.", "_operator.", 1), full.rpartition(".")[2]})


def _waits_for_itself(nodes: set[Node], group: dict[Node, int], members: dict[int, set[Node]]) -> bool:
    """Whether something outside of a group needs it and is needed by it; groups are computed as a whole."""
    ahead = [user for node in nodes for user in node.users if user not in nodes]
    seen: set[Node] = set()
    while ahead:
        node = ahead.pop()
        if node in nodes:
            return True
        if node in seen:
            continue
        together = members[group[node]] if node in group else {node}
        seen |= together
        ahead += [user for item in together for user in item.users if user not in seen]
    return False
