"""Runs a graph on tensors without memory, and keeps them in the nodes."""

from __future__ import annotations

from typing import Any

from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node
from taeda.fx.passes.shape_prop import _extract_tensor_metadata
from taeda_registry.slots import tensor

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph module; every node's `meta` gets "val", its result, and "tensor_meta".

    Args:
        module: The graph module.
        mode: Under which mode it runs; none by default.
    """

    def __init__(self, module: Any, mode: Any = None) -> None:
        super().__init__(module)
        self._mode = mode

    def run_node(self, n: Node) -> Any:
        """The result of a node, noted."""
        result = super().run_node(n)
        n.meta["val"] = result
        if isinstance(result, tensor.Tensor):
            n.meta["tensor_meta"] = _extract_tensor_metadata(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these inputs; tensors stand for others of their shape and dtype."""
        with tensor.no_grad():
            return self.run(*args)

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on these inputs as they are."""
        return self.run(*args)
