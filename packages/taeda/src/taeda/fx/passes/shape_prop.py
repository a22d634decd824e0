"""Runs a graph and notes on every node what its result was like."""

from __future__ import annotations

from typing import Any, NamedTuple

from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node, map_aggregate
from taeda_registry.slots import tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its numbers."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    memory_format = None
    if include_contiguity and result.layout == tensor.strided:
        for form in (tensor.contiguous_format, tensor.channels_last, tensor.channels_last_3d):
            if form is not tensor.contiguous_format and result.dim() != (
                4 if form is tensor.channels_last else 5
            ):
                continue
            if result.is_contiguous(memory_format=form):
                memory_format = form
                break
    stride = result.stride() if result.layout == tensor.strided else ()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {})


class ShapeProp(Interpreter):
    """Runs a graph module; every node's `meta` gets "tensor_meta" and "type".

    Args:
        gm: The graph module.
        fake_mode: Run on tensors without memory where it is not None.

    Example:
        >>> net = taeda.fx.symbolic_trace(lambda x: x @ x.t())
        >>> _ = taeda.fx.passes.shape_prop.ShapeProp(net).propagate(taeda.ones(2, 3))
        >>> [node.meta["tensor_meta"].shape for node in net.graph.nodes][-1]
        Size([2, 2])
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """The result of a node, noted."""
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def describe(item: Any) -> Any:
            nonlocal found
            if isinstance(item, tensor.Tensor):
                found = True
                return _extract_tensor_metadata(item)
            return item

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on inputs; the result."""
        return super().run(*args)
