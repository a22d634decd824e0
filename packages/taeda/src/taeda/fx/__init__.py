"""Marks for a symbolic tracer that is not there, and the names of its classes.

Code that is traced elsewhere can be imported and run here: `wrap` gives the function back, tracers and graph
modules can be derived from, and making one says that it is not there.
"""

from __future__ import annotations

from typing import Any

from taeda import _absent
from taeda.compiler import _itself
from taeda.fx import graph, graph_module, node, proxy
from taeda.fx._tracer import ProxyableClassMeta, Tracer, symbolic_trace
from taeda.fx.graph import CodeGen, Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter, Transformer
from taeda.fx.node import Node, has_side_effect, map_arg
from taeda.fx.proxy import Proxy

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "graph", "graph_module",
    "has_side_effect", "map_arg", "node", "proxy", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip

replace_pattern = _absent.function("taeda.fx.replace_pattern", "there is no symbolic tracer")


def wrap(fn_or_name: Any) -> Any:
    """Mark of a function that a tracer takes as it is: the function itself, or the name that was given.

    Raises:
        RuntimeError: Neither a function nor a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"wrap: expected a function or its name, found {type(fn_or_name).__name__}")
    return _itself(fn_or_name)
