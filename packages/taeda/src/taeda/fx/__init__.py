"""Symbolic tracing: programs as graphs that can be looked at, changed and run.

`symbolic_trace` runs a function or module on proxies and keeps what it called; the result is a `GraphModule`, a module
whose `graph` can be edited and whose `forward` is made of it (Reed et al. 2022, "torch.fx: Practical Program Capture
and Transformation for Deep Learning in Python", https://arxiv.org/abs/2112.08429).

Example:
    >>> net = taeda.fx.symbolic_trace(lambda x: taeda.relu(x) * 2)
    >>> for node in net.graph.nodes:
    ...     if node.target is taeda.relu:
    ...         node.target = taeda.tanh
    >>> _ = net.recompile()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.fx import (
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    proxy,
    traceback,
)
from taeda.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from taeda.fx.graph import CodeGen, Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter, Transformer
from taeda.fx.node import Node, has_side_effect, map_arg
from taeda.fx.proxy import Proxy

if TYPE_CHECKING:
    from taeda.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "graph", "graph_module", "has_side_effect", "immutable_collections", "interpreter", "map_arg",
    "node", "proxy", "replace_pattern", "symbolic_trace", "traceback", "wrap",
]  # fmt: skip

_MODULES = frozenset(
    {"annotate", "config", "experimental", "operator_schemas", "passes", "subgraph_rewriter", "tensor_type"}
)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "replace_pattern":
        return import_module("taeda.fx.subgraph_rewriter").replace_pattern
    if name in _MODULES:
        return import_module(f"taeda.fx.{name}")
    raise AttributeError(f"module 'taeda.fx' has no attribute {name!r}")
