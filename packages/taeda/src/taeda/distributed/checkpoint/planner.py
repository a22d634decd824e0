"""Plans: which parts of which tensors each process writes or reads."""

from __future__ import annotations

import abc
import enum
from dataclasses import dataclass
from typing import Any

from taeda.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(enum.Enum):
    """What is written."""

    TENSOR = enum.auto()
    SHARD = enum.auto()
    BYTE_IO = enum.auto()


class LoadItemType(enum.Enum):
    """What is read."""

    TENSOR = enum.auto()
    BYTE_IO = enum.auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes there are."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor, what the tensor is, and its whole shape."""

    chunk: ChunkStorageMetadata
    properties: Any
    size: Any


@dataclass(frozen=True)
class WriteItem:
    """Something that a process writes."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """How many bytes a tensor has; None of other objects."""
        if self.tensor_data is None:
            return None
        count = 1
        for size in self.tensor_data.chunk.sizes:
            count *= size
        return count * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Something that a process reads: where it goes, and what of the stored part is taken."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Any
    storage_index: MetadataIndex
    storage_offsets: Any
    lengths: Any


@dataclass(frozen=True)
class SavePlan:
    """What one process writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one process reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Says what is written: first each process for itself, then the first one for all."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: Any, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Gets what is to be saved."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process could write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process writes, and what the checkpoint holds."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """What this process writes in the end."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the bytes."""


class LoadPlanner(abc.ABC):
    """Says what is read, and puts it where it belongs."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: Any, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Gets what is to be loaded, and what there is."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process reads."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each process reads."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """What this process reads in the end."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        """Takes an object that is no tensor."""

    def resolve_bytes(self, read_item: ReadItem) -> Any:
        """Where bytes go: not used by files."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The tensor into which is read."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Is told that the tensor has been read."""
