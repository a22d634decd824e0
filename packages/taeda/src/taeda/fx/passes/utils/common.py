"""Parts of graphs as modules of their own."""

from __future__ import annotations

from typing import Any

from taeda.fx.graph_module import GraphModule, _copy_attr
from taeda_registry.slots import nn

__all__ = ["HolderModule", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """Has the submodules of a dict."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Any, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A graph module of a part of another's graph, with the attributes that the part names.

    Returns:
        The module, and the paths that attributes had, by those that they have now.
    """
    holder = HolderModule({})
    paths: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op in ("call_module", "get_attr"):
            _copy_attr(gm, holder, node.target)
            paths[f"{comp_name}.{node.target}" if comp_name else node.target] = node.target
    return GraphModule(holder, subgraph, class_name), paths
