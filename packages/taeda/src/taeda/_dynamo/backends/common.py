"""What compilers of graphs have in common."""

from __future__ import annotations

from typing import Any

from taeda._functorch.aot_autograd import aot_autograd, aot_module_simplified
from taeda_registry.slots import tensor

__all__ = [
    "aot_autograd",
    "aot_module_simplified",
    "device_from_inputs",
    "dtype_from_inputs",
    "fake_tensor_unsupported",
]


def _first(example_inputs: Any) -> Any:
    return next((item for item in example_inputs if isinstance(item, tensor.Tensor)), None)


def device_from_inputs(example_inputs: Any) -> Any:
    """The device of the first tensor; the cpu where there is none."""
    found = _first(example_inputs)
    return tensor.device("cpu") if found is None else found.device


def dtype_from_inputs(example_inputs: Any) -> Any:
    """The dtype of the first tensor; float32 where there is none."""
    found = _first(example_inputs)
    return tensor.float32 if found is None else found.dtype


def fake_tensor_unsupported(fn: Any) -> Any:
    """Mark of a compiler that wants real tensors, which all get: the compiler itself."""
    return fn
