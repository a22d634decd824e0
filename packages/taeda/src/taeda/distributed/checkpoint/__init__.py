"""Checkpoints of several processes: each writes its parts of tensors, and reads what it needs, whoever wrote it."""

from __future__ import annotations

from taeda.distributed.checkpoint.api import CheckpointException
from taeda.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from taeda.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from taeda.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from taeda.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from taeda.distributed.checkpoint.optimizer import load_sharded_optimizer_state_dict
from taeda.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from taeda.distributed.checkpoint.state_dict_loader import load, load_state_dict
from taeda.distributed.checkpoint.state_dict_saver import (
    AsyncCheckpointerType,
    async_save,
    save,
    save_state_dict,
)
from taeda.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "AsyncCheckpointerType", "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata",
    "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter",
    "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan", "LoadPlanner",
    "Metadata", "ReadItem", "SavePlan", "SavePlanner", "StorageReader", "StorageWriter", "TensorStorageMetadata",
    "WriteItem", "async_save", "load", "load_sharded_optimizer_state_dict", "load_state_dict", "save",
    "save_state_dict",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in (
        "_consolidate_hf_safetensors",
        "_hf_utils",
        "format_utils",
        "planner_helpers",
        "staging",
        "state_dict",
    ):
        from importlib import import_module

        return import_module(f"taeda.distributed.checkpoint.{name}")
    from taeda import _distributed_names

    return _distributed_names.child("checkpoint", name)
