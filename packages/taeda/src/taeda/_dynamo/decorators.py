"""Marks for a compiler of Python code."""

from taeda._dynamo import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    leaf_function,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    run,
    substitute_in_graph,
)

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "forbid_in_graph", "graph_break",
    "leaf_function", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "run",
    "substitute_in_graph",
]  # fmt: skip
