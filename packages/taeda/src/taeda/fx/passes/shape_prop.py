"""Notes shapes and dtypes on the nodes of a graph, by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a node's tensor beside its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    """What is known of a tensor beside its values."""
    found = None
    if include_contiguity:
        formats = (taeda.contiguous_format, taeda.channels_last, taeda.channels_last_3d)
        dims = {taeda.channels_last: 4, taeda.channels_last_3d: 5}
        fitting = (f for f in formats if dims.get(f, result.ndim) == result.ndim)
        found = next((f for f in fitting if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, tuple(result.stride()), found, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes on each node `meta["tensor_meta"]`, a `TensorMetadata` or a container of such.

    The type of each node's value is noted as `meta["type"]`.

    Example:
        >>> traced = taeda.fx.symbolic_trace(nn.Linear(2, 3))
        >>> _ = taeda.fx.passes.shape_prop.ShapeProp(traced).propagate(taeda.ones(4, 2))
        >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes][-1]
        (4, 3)
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose facts are noted."""
        result = super().run_node(n)
        found = False

        def facts(value: Any) -> Any:
            nonlocal found
            if isinstance(value, taeda.Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        noted = map_aggregate(result, facts)
        if found:
            n.meta["tensor_meta"] = noted
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs; returns its result."""
        return super().run(*args)
