"""Gradients of sparse tensors: those of their elements."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core._inner_gradients import Inner
from taeda_tensor_core.sparse._making import coo, elements_at
from taeda_tensor_core.sparse._tensor import SparseTensor, _with


def _at_places(x: SparseTensor, gradient: Any) -> list[Any]:
    """What of a gradient, sparse or not, belongs to the elements of coordinates."""
    whole = gradient.to_dense() if isinstance(gradient, SparseTensor) else gradient
    if tuple(whole.shape) != tuple(x.shape):
        raise RuntimeError(
            f"grad: the gradient has shape {tuple(whole.shape)}, expected that of the result, {tuple(x.shape)}"
        )
    return [elements_at(whole, x._places[0])]


INNER = Inner(
    SparseTensor, coo, lambda x: [x._elements], _at_places, lambda x, grads: _with(x, grads[0])
)  # fmt: skip
