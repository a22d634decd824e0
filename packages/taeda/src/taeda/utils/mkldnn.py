"""Models for oneDNN, which computes with taeda's layers as they are: what is left is their dtype."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["to_mkldnn"]


def to_mkldnn(module: Any, dtype: Any = None) -> Any:
    """A model for inference: its linear layers, convolutions and PReLUs in a dtype, everything else as it is.

    Args:
        module: The model, whose layers are changed in place.
        dtype: float32 (the default), bfloat16 or float16.

    Raises:
        TypeError: The dtype is none of these.

    Example:
        >>> model = taeda.utils.mkldnn.to_mkldnn(taeda.nn.Linear(3, 2).eval())
        >>> model(taeda.ones(1, 3).to_mkldnn()).to_dense().shape
        Size([1, 2])
    """
    dtype = tensor.float32 if dtype is None else dtype
    if dtype not in (tensor.float32, tensor.bfloat16, tensor.float16):
        raise TypeError(f"to_mkldnn: argument 'dtype' must be float32, bfloat16 or float16, found {dtype!r}")
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.PReLU):
            part.to(dtype).requires_grad_(False)
    return module
