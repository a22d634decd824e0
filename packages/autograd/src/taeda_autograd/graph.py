"""Looking into the graph."""

from __future__ import annotations

from typing import NamedTuple

from taeda_autograd import _C

Node = _C.Node


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: a node and the number of its output."""

    node: _C.Node
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge of `tensor`; for leaves its AccumulateGrad node.

    Raises:
        RuntimeError: The tensor needs no gradient.
    """
    return GradientEdge(*_C.gradient_edge(tensor))
