"""Jagged tensors by the names of PyTorch's inner module: from values and borders, from lists, and from filled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.nested._functions import as_nested_tensor, nested_tensor_from_jagged
from taeda_tensor_core.nested._tensor import NestedTensor

__all__ = [
    "NestedTensor", "buffer_from_jagged", "jagged_from_list", "nested_from_padded", "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]  # fmt: skip


def nested_view_from_values_offsets(
    values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None
) -> NestedTensor:
    """`nested_tensor_from_jagged` of values and offsets."""
    return nested_tensor_from_jagged(values, offsets, None, ragged_idx)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor, ragged_idx: int = 1, min_seqlen: Any = None,
    max_seqlen: Any = None,
) -> NestedTensor:  # fmt: skip
    """`nested_tensor_from_jagged` of values, offsets and lengths."""
    return nested_tensor_from_jagged(values, offsets, lengths, ragged_idx)


def jagged_from_list(
    tensors: Sequence[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, Tensor]:
    """A jagged tensor of tensors, which keep their history, and its offsets.

    Args:
        offsets: Those of another one with parts as long, which the result shares; None for its own.

    Raises:
        RuntimeError: The parts have other lengths than `offsets` say.
    """
    made = as_nested_tensor(list(tensors), dtype=dtype, device=device, layout=_info.jagged)
    if offsets is None:
        return made, made.offsets()
    if offsets.tolist() != made.offsets().tolist():
        raise RuntimeError("jagged_from_list: argument 'offsets' does not fit the lengths of the tensors")
    return nested_tensor_from_jagged(made.values(), offsets), offsets


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The lines of all parts."""
    return jagged.values()


def nested_from_padded(
    padded: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: Any = None, max_seqlen: Any = None,
    sum_S: Any = None,
) -> NestedTensor:  # fmt: skip
    """The jagged tensor of which `padded` holds the parts, filled up."""
    lengths = offsets.diff()
    places = _C.arange(padded.shape[ragged_idx], device=padded.device)
    if ragged_idx != 1:
        parts = [row.narrow(ragged_idx - 1, 0, n) for row, n in zip(padded, lengths.tolist(), strict=True)]
        return NestedTensor.around(parts, _info.jagged, ragged_idx)
    return nested_tensor_from_jagged(padded[places < lengths.unsqueeze(1)], offsets)
