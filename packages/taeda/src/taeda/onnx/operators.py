"""Shapes as tensors, which older programs wrote so that an exporter sees them."""

from __future__ import annotations

from typing import Any

import taeda

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Any) -> Any:
    """The sizes of `x`, int64 of shape (x.dim(),).

    Example:
        >>> shape_as_tensor(taeda.ones(2, 3))
        tensor([2, 3])
    """
    return taeda._shape_as_tensor(x)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """`x` in the sizes that a tensor of integers holds.

    Raises:
        RuntimeError: They are not those of as many elements.
    """
    return x.reshape(shape.tolist())
