"""What passes over graphs have in common: names of targets, order of nodes, groups that belong together."""

from __future__ import annotations

from typing import Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.fx.passes.operator_support import _target_name
from taeda_registry.slots import tensor

__all__ = [
    "CALLABLE_NODE_OPS", "FxNetAccFusionsFinder", "Names", "NodeList", "NodeSet", "TensorOrTensors", "Tensors",
    "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort",
]  # fmt: skip

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}
Tensors = tuple[tensor.Tensor, ...] | list[tensor.Tensor]
TensorOrTensors = tensor.Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]


def get_acc_ops_name(k: Any) -> str:
    """The name of a function as lists of supported operators have it."""
    if isinstance(k, str):
        return k
    home = (getattr(k, "__module__", None) or "").replace("torch._ops", "torch.ops")
    return f"acc_ops.{k.__name__}" if "acc_ops" in home else f"{home}.{k.__name__}"


def get_node_target(submodules: Any, node: Node) -> str:
    """The name of what a node calls: of a function, of a module's class, or of a method.

    Args:
        submodules: The modules by path. node: A call.

    Raises:
        AssertionError: The node is no call.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"get_node_target: expected op types of {', '.join(CALLABLE_NODE_OPS)}, found {node.op}"
        )
    return _target_name(submodules, node)


def is_node_output_tensor(node: Node) -> bool:
    """Whether shape propagation has found that a node's result is a tensor."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, tensor.Tensor)


class FxNetAccFusionsFinder:
    """Groups of nodes around results that are no tensors: all nodes that make or use such belong together.

    Args:
        module: A graph module. acc_nodes: The nodes that may be in groups.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def __call__(self) -> dict[Node, NodeSet]:
        """By node, the group that it belongs to."""
        found: dict[Node, NodeSet] = {}
        for node in self.nodes:
            if node not in self.acc_nodes or node.op not in CALLABLE_NODE_OPS or is_node_output_tensor(node):
                continue
            if "type" not in node.meta:
                continue
            group = {node, *(n for n in node.users if n in self.acc_nodes)}
            group |= {n for n in node.all_input_nodes if n in self.acc_nodes}
            for member in list(group):
                group |= found.get(member, set())
            for member in group:
                found[member] = group
        return found


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a graph in an order in which each stands behind what it needs.

    Raises:
        RuntimeError: Nodes need each other in a circle.
    """
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = [node for node, count in waiting.items() if not count and node.op != "output"]
    copies: dict[Node, Node] = {}
    made = Graph()
    ends = [node for node in gm.graph.nodes if node.op == "output"]
    for node in ready:
        copies[node] = made.node_copy(node, copies.__getitem__)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user] and user.op != "output":
                ready.append(user)
    if len(copies) + len(ends) < len(waiting):
        raise RuntimeError(
            f"legalize_graph: {len(waiting) - len(copies) - len(ends)} nodes need each other in a circle"
        )
    for node in ends:
        made.node_copy(node, copies.__getitem__)
    made.set_codegen(gm.graph._codegen)
    gm.graph = made
    return gm


stable_topological_sort = legalize_graph
