"""Targets put in the place of others, and sizes of what nodes give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.fx.passes.shape_prop import ShapeProp
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from taeda.fx.graph_module import GraphModule
    from taeda.fx.node import Node

__all__ = [
    "get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes",
]  # fmt: skip


class size_bytes(NamedTuple):
    """Bytes of a node's result, and of that and its parameters."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Let all nodes of one kind and target be of another, with the same arguments."""
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            node.op, node.target = new_op, new_target
    fx_module.recompile()


def get_tensor_meta(node: Node) -> Any:
    """Shape and dtype of a node's result.

    Raises:
        RuntimeError: No shapes have been propagated.
    """
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(f"get_tensor_meta: node {node} has no tensor metadata; run ShapeProp before")
    return found


def get_size_of_all_nodes(fx_module: GraphModule, args: Any = None) -> None:
    """Keep in every node as `size_bytes` how large its result and its parameters are.

    Args:
        fx_module: The graph module. args: Inputs that shapes are found with.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def _bytes(shape: Any, dtype: Any) -> int:
    count = 1
    for size in shape:
        count *= size
    return count * int(dtype.itemsize)


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """How large a node's result is, and that with the parameters of the module that it calls."""
    parameters = 0
    if node.op == "call_module":
        module: nn.Module = dict(fx_module.named_modules())[str(node.target)]
        parameters = sum(_bytes(p.shape, p.dtype) for p in {**dict(module.named_parameters())}.values())
    meta = get_tensor_meta(node)
    output = _bytes(meta.shape, meta.dtype)
    return size_bytes(output, output + parameters)
