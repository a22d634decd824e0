"""Where checkpoints stand: what a place for them must be able to do."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

from taeda.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from taeda.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Something that was written."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes what plans say."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins a checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is told whether this process leads."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan of this process, with what the storage notes down."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The plans of all, with what the storage notes down."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Writes; a future of a list of `WriteResult`."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes what the checkpoint holds, in the process that leads."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it could be a checkpoint of this kind."""

    def storage_meta(self) -> StorageMeta | None:
        """About the checkpoint."""
        return None


class StorageReader(abc.ABC):
    """Reads what plans say."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins to read a checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds."""

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Gets what the checkpoint holds."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Reads; a future."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it could be a checkpoint of this kind."""
