"""Nested tensors: several tensors that differ in size, as one.

A nested tensor keeps its parts as tensors of their own. What is defined for it is done part by part, so that gradients
flow to the parts; whatever is not is refused by name, and `to_padded_tensor` always helps.

Example:
    >>> words = taeda.nested.nested_tensor([taeda.ones(2, 3), taeda.ones(4, 3)])
    >>> taeda.nested.to_padded_tensor(words, 0.0).shape
    Size([2, 4, 3])
"""

from __future__ import annotations

from taeda_tensor_core.nested._functions import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)
from taeda_tensor_core.nested._tensor import NestedTensor

__all__ = [
    "NestedTensor", "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip
