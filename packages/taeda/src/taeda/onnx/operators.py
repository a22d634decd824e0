"""Shapes as tensors, for programs that are exported."""

from __future__ import annotations

from typing import Any

import taeda as torch

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Any) -> Any:
    """The shape of a tensor, as a tensor of int64.

    Example:
        >>> shape_as_tensor(taeda.ones(2, 3))
        tensor([2, 3])
    """
    return torch.tensor(list(x.shape), dtype=torch.int64)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """A tensor in the shape that another one says."""
    return x.reshape(shape.tolist())
