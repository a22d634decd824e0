"""Runs a graph on tensors without memory, and keeps them in the nodes."""

from __future__ import annotations

from typing import Any

from taeda._subclasses import FakeTensorMode
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node
from taeda.fx.passes.shape_prop import _extract_tensor_metadata
from taeda.utils._pytree import tree_map_only
from taeda_registry.slots import tensor

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph module on fake tensors; every node's `meta` gets "val", its result, and "tensor_meta".

    Args:
        module: The graph module.
        mode: Of which mode the fake tensors are; by default of one that takes the module's parameters as they are.
    """

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode(allow_non_fake_inputs=True) if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """The result of a node, noted."""
        result = super().run_node(n)
        n.meta["val"] = result
        if isinstance(result, tensor.Tensor):
            n.meta["tensor_meta"] = _extract_tensor_metadata(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on fake tensors of these inputs."""
        return self.propagate_dont_convert_inputs(*tree_map_only(tensor.Tensor, self._mode.from_tensor, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on these inputs, which are fake."""
        with self._mode:
            return self.run(*args)
