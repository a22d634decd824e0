"""What of a graph does not depend on its inputs, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.fx._symbolic_trace import symbolic_trace
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, drawing
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]

_DRAWING = drawing | {"dropout"}


def get_unique_attr_name_in_module(mod_traced: nn.Module, name: str) -> str:
    """A name that a module has no attribute of, made of the given one."""
    name = "".join(char if char.isalnum() else "_" for char in name)
    name = f"_{name}" if name[:1].isdigit() else name
    count, tried = 0, name
    while hasattr(mod_traced, tried):
        count += 1
        tried = f"{name}_{count}"
    return tried


class FoldedGraphModule(GraphModule):
    """A graph module with what its constants give, computed at the first call or by `run_folding`.

    Args:
        root: Has the modules and parameters. graph: The graph. const_subgraph: Computes the constants.
        fx_const_folded_attrs_name: Where their results are kept.
    """

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constants."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        self.has_folding_been_run = True
        for index, value in enumerate(self.const_subgraph_module()):
            kept = value
            if isinstance(value, tensor.Tensor) and not isinstance(value, nn.Parameter):
                kept = nn.Parameter(value.detach(), requires_grad=value.requires_grad)
            setattr(self, f"{self.fx_const_folded_attrs_name}_{index}", kept)


def split_const_subgraphs(
    module: nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A graph module in which what does not depend on inputs is read from attributes.

    Args:
        module: A module, traced if it is no graph module.
        skip_folding_node_fn: Says of a node that it is to stay.

    Example:
        >>> from taeda.fx.experimental.const_fold import split_const_subgraphs
        >>> class M(taeda.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.w = taeda.nn.Parameter(taeda.ones(2))
        ...     def forward(self, x):
        ...         return x + self.w * 3
        >>> folded = split_const_subgraphs(M())
        >>> [n.op for n in folded.graph.nodes]
        ['placeholder', 'get_attr', 'call_function', 'output']
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: dict[Node, None] = {}
    for node in traced.graph.nodes:
        needs = node.all_input_nodes
        known = node.op == "get_attr" or (
            node.op in ("call_function", "call_method", "call_module")
            and all(n in constant for n in needs)
            and needs
            and getattr(node.target, "__name__", str(node.target)).lower() not in _DRAWING
        )
        if known and not (skip_folding_node_fn is not None and skip_folding_node_fn(node)):
            constant[node] = None
    wanted = [n for n in constant if n.op != "get_attr" and any(user not in constant for user in n.users)]
    if not wanted:
        return FoldedGraphModule(traced, traced.graph)
    constants = Graph()
    copies: dict[Node, Node] = {}
    for node in constant:
        copies[node] = constants.node_copy(node, copies.__getitem__)
    constants.output(tuple(copies[node] for node in wanted))
    constants.eliminate_dead_code()
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    made = Graph()
    values: dict[Node, Node] = {}
    for node in traced.graph.nodes:
        if node in wanted:
            path = f"{name}_{wanted.index(node)}"
            setattr(traced, path, nn.Parameter(tensor.empty(0), requires_grad=False))
            values[node] = made.get_attr(path)
            values[node].meta = dict(node.meta)
        elif node not in constant or (node.op == "get_attr" and any(u not in constant for u in node.users)):
            values[node] = made.node_copy(node, values.__getitem__)
    made.set_codegen(traced.graph._codegen)
    return FoldedGraphModule(traced, made, constants, name)
