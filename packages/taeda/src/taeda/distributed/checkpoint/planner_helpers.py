"""From tensors to items of plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from taeda.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)


def chunk_of(value: Any) -> ChunkStorageMetadata:
    """The part of a tensor that this process has."""
    from taeda.distributed.tensor import DTensor
    from taeda.distributed.tensor._utils import compute_local_shape_and_global_offset

    if isinstance(value, DTensor):
        sizes, starts = compute_local_shape_and_global_offset(
            value.shape, value.device_mesh, value.placements
        )
    else:
        sizes, starts = tuple(value.shape), (0,) * value.dim()
    return ChunkStorageMetadata(torch.Size(starts), torch.Size(sizes))


def local_of(value: Any) -> Any:
    """The memory of this process."""
    from taeda.distributed.tensor import DTensor

    return value.to_local().detach() if isinstance(value, DTensor) else value.detach()


def write_items(name: str, value: Any) -> list[WriteItem]:
    """What this process could write of a value."""
    from taeda.distributed.tensor import DTensor

    if not isinstance(value, torch.Tensor):
        return [WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, BytesIOWriteData(0))]
    chunk = chunk_of(value)
    if isinstance(value, DTensor) and (0 in chunk.sizes and 0 not in value.shape):
        return []  # nothing of it is here
    kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(value), torch.Size(value.shape))
    return [WriteItem(MetadataIndex(name, chunk.offsets), kind, tensor_data=data)]


def items_of_dtensor(name: str, value: Any) -> list[WriteItem]:
    """What this process could write of a DTensor."""
    return write_items(name, value)


def read_items(name: str, stored: Any, value: Any) -> Iterator[ReadItem]:
    """What this process reads for a value.

    Raises:
        ValueError: The stored tensor has another shape. RuntimeError: One is a tensor and the other is not.
    """
    if isinstance(stored, BytesStorageMetadata):
        index, none = MetadataIndex(name), torch.Size((0,))
        yield ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)
        return
    if isinstance(value, (bool, int, float)) and len(stored.chunks) == 1 and math.prod(stored.size) == 1:
        # A number that was saved as a tensor, as PyTorch's optimizers count their steps.
        value = torch.zeros(stored.size, dtype=stored.properties.dtype)
    if not isinstance(value, torch.Tensor):
        raise RuntimeError(
            f"{name} is a tensor in the checkpoint, found {type(value).__name__} in the state to be loaded"
        )
    if tuple(stored.size) != tuple(value.shape):
        raise ValueError(
            f"Size mismatch between saved {stored.size} and current: {torch.Size(value.shape)} for {name}"
        )
    own = chunk_of(value)
    for number, chunk in enumerate(stored.chunks):
        found = _overlap(own, chunk)
        if found is None:
            continue
        into, out_of, lengths = found
        yield ReadItem(
            LoadItemType.TENSOR, MetadataIndex(name, own.offsets), torch.Size(into),
            MetadataIndex(name, chunk.offsets, number), torch.Size(out_of), torch.Size(lengths),
        )  # fmt: skip


def _overlap(own: Any, chunk: Any) -> tuple[Sequence[int], Sequence[int], Sequence[int]] | None:
    """Where two parts of a tensor overlap: the beginning in each, and the lengths."""
    into, out_of, lengths = [], [], []
    for a, n, b, m in zip(own.offsets, own.sizes, chunk.offsets, chunk.sizes, strict=True):
        low, high = max(a, b), min(a + n, b + m)
        if low >= high:
            return None
        into.append(low - a)
        out_of.append(low - b)
        lengths.append(high - low)
    return into, out_of, lengths


def described(items: Sequence[WriteItem]) -> Any:
    """What a checkpoint holds under one name."""
    first = items[0]
    if first.tensor_data is None:
        return BytesStorageMetadata()
    data = first.tensor_data
    return TensorStorageMetadata(
        data.properties, data.size, [i.tensor_data.chunk for i in items if i.tensor_data]
    )


_create_write_items = write_items
_create_read_items = read_items
