"""Folds batch normalization into the convolution or linear layer before it, for inference."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from taeda.fx._symbolic_trace import symbolic_trace
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference", "remove_dropout",
    "replace_node_module",
]  # fmt: skip


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the module around an attribute, and the attribute's name."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Any, modules: dict[str, Any]) -> bool:
    """Whether a node's first argument, and the node, call modules of exactly these two classes."""
    if not node.args:
        return False
    for expected, here in zip(pattern, (node.args[0], node), strict=False):
        if getattr(here, "op", None) != "call_module" or not isinstance(here.target, str):
            return False
        if type(modules.get(here.target)) is not expected:
            return False
    return True


def replace_node_module(node: Any, modules: dict[str, Any], new_module: Any) -> None:
    """Put another module in the place of the one that a node calls."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """The model without batch normalizations that follow a convolution or linear layer, folded into its weights.

    Args:
        model: A model in evaluation mode.
        inplace: Change the layers of `model` itself.
        no_trace: `model` is a graph module already.

    Example:
        >>> net = taeda.nn.Sequential(taeda.nn.Conv2d(3, 4, 3), taeda.nn.BatchNorm2d(4)).eval()
        >>> [node.op for node in taeda.fx.experimental.optimization.fuse(net).graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    folded = nn.utils.fusion
    pairs = [
        (nn.Conv1d, nn.BatchNorm1d, folded.fuse_conv_bn_eval),
        (nn.Conv2d, nn.BatchNorm2d, folded.fuse_conv_bn_eval),
        (nn.Conv3d, nn.BatchNorm3d, folded.fuse_conv_bn_eval),
        (nn.Linear, nn.BatchNorm1d, folded.fuse_linear_bn_eval),
    ]
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = traced.graph
    for layer, norm, fold in pairs:
        for node in list(graph.nodes):
            if not matches_module_pattern((layer, norm), node, modules):
                continue
            before = node.args[0]
            if len(before.users) > 1 or not modules[node.target].track_running_stats:
                continue
            replace_node_module(before, modules, fold(modules[before.target], modules[node.target]))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Any) -> Any:
    """The model without dropout layers."""
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = traced.graph
    for node in list(graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def optimize_for_inference(model: Any, pass_config: dict[str, Any] | None = None, tracer: Any = None) -> Any:
    """The model with normalizations folded into the layers before them, and without dropout.

    Layers run on oneDNN where they can in any case, so that nothing is to be done for that.

    Args:
        model: A model in evaluation mode.
        pass_config: By name, "conv_bn_fuse" and "remove_dropout": whether these are done.
        tracer: Accepted.

    Raises:
        RuntimeError: An unknown name.
    """
    wanted = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": {}}
    unknown = sorted(set(pass_config or {}) - set(wanted))
    if unknown:
        raise RuntimeError(f"optimize_for_inference: unknown names in 'pass_config': {', '.join(unknown)}")
    wanted.update(pass_config or {})
    if wanted["conv_bn_fuse"]:
        model = fuse(model)
    return remove_dropout(model) if wanted["remove_dropout"] else model


def extract_subgraph(
    orig_module: Any, nodes: list[Any], inputs: list[Any], outputs: list[Any]
) -> GraphModule:
    """A graph module of some nodes of another's graph."""
    graph = Graph()
    values: dict[Any, Any] = {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
