"""Groups of nodes that another program can run, as modules of their own."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

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
        non_compute_ops: Names of functions that are no work of their own.
        allowed_single_node_partition_ops: Names of functions that may be a group of their own.

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
        **_: Any,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = frozenset(non_compute_ops or ())
        self.allowed_single_node_partition_ops = frozenset(allowed_single_node_partition_ops or ())

    def _is_supported(self, node: Node) -> bool:
        return node.op.startswith("call_") and self.operator_support.is_node_supported(
            dict(self.graph_module.named_modules()), node
        )

    def propose_partitions(self) -> list[Partition]:
        """Groups of supported nodes that are connected and do not wait for each other in a circle."""
        group: dict[Node, int] = {}
        members: dict[int, set[Node]] = {}
        for number, node in enumerate(reversed(list(self.graph_module.graph.nodes))):
            if not self._is_supported(node):
                continue
            group[node], members[number] = number, {node}
            for other in sorted({group[user] for user in node.users if user in group}):
                mine = group[node]
                if other == mine or _waits_for_itself(members[mine] | members[other], group, members):
                    continue
                for item in members[other]:
                    group[item] = mine
                members[mine] |= members.pop(other)
        order = {node: place for place, node in enumerate(self.graph_module.graph.nodes)}
        kept = [nodes for nodes in members.values() if self._counts(nodes)]
        kept.sort(key=lambda nodes: min(order[node] for node in nodes), reverse=True)
        return [Partition(i, sorted(nodes, key=order.__getitem__)) for i, nodes in enumerate(kept)]

    def _counts(self, nodes: set[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        work = [node for node in nodes if not self._is_no_work(node)]
        if len(work) > 1:
            return True
        return bool(work) and _name(work[0]) in self.allowed_single_node_partition_ops

    def _is_no_work(self, node: Node) -> bool:
        return node.target is operator.getitem or _name(node) in self.non_compute_ops

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


def _name(node: Node) -> str:
    target = node.target
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


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
