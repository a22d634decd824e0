"""Programs as graphs: a tracer, the graph that it makes, and what reads and changes it.

`symbolic_trace` runs a module or function once with proxies in the place of its inputs; the module that it gives has
`graph`, whose nodes can be changed, and `code`, the Python source that is compiled from it.

Example:
    >>> traced = taeda.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    >>> [node.op for node in traced.graph.nodes]
    ['placeholder', 'call_module', 'call_module', 'output']
"""

from __future__ import annotations

from taeda.fx import (
    _symbolic_trace,
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    passes,
    proxy,
    subgraph_rewriter,
)
from taeda.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from taeda.fx.graph import CodeGen, Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter, Transformer
from taeda.fx.node import Node, has_side_effect, map_arg
from taeda.fx.proxy import Proxy
from taeda.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "_symbolic_trace", "graph", "graph_module", "has_side_effect", "immutable_collections",
    "interpreter", "map_arg", "node", "passes", "proxy", "replace_pattern", "subgraph_rewriter",
    "symbolic_trace", "wrap",
]  # fmt: skip
