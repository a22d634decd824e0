"""Sizes of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda.distributed.tensor import _moves
from taeda.distributed.tensor.placement_types import Placement, Shard

__all__ = [
    "compute_global_tensor_info",
    "compute_local_shape",
    "compute_local_shape_and_global_offset",
    "narrow_tensor_by_index",
]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of the part of this process, and where in the whole it begins.

    Example:
        >>> compute_local_shape_and_global_offset((4, 4), mesh, [Shard(0)])  # doctest: +SKIP
    """
    if mesh.get_coordinate() is None:
        return (0,), ()
    sizes, starts = _moves.local_size(global_shape, mesh, placements)
    return tuple(sizes), tuple(starts)


def compute_local_shape(
    global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement]
) -> tuple[int, ...]:
    """Shape of the part of this process."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(
    tensor: Any, mesh: Any, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Shape and strides of the whole, by a part; all parts are taken to be as large."""
    shape, stride = list(tensor.shape), list(tensor.stride())
    for at, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim
            for other in range(len(stride)):
                if other != dim and stride[other] >= stride[dim]:
                    stride[other] *= mesh.shape[at]
            shape[dim] *= mesh.shape[at]
    return shape, stride


def narrow_tensor_by_index(tensor: Any, offsets: Sequence[int], sizes: Sequence[int]) -> Any:
    """The part of a tensor that begins at the offsets.

    Example:
        >>> narrow_tensor_by_index(torch.arange(6).reshape(2, 3), (0, 1), (2, 2)).tolist()  # doctest: +SKIP
        [[1, 2], [4, 5]]
    """
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if (offset, size) != (0, tensor.shape[dim]):
            tensor = tensor.narrow(dim, offset, size)
    return tensor
