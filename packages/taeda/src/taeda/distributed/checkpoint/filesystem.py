"""Checkpoints in a folder: a file of each process, and one that says what they hold. Both libraries read them."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint.metadata import Metadata, StorageMeta
from taeda.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItemType,
)
from taeda.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from taeda.distributed.tensor._utils import narrow_tensor_by_index
from taeda.futures import Future
from taeda_registry import files
from taeda_registry.pickles import DISPATCH

__all__ = ["FileSystemReader", "FileSystemWriter"]

_METADATA, _SUFFIX, _VERSION = ".metadata", ".distcp", "1.0.0"


@dataclass
class _StorageInfo:
    """Where something stands."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if value is not None}


@dataclass
class _StoragePrefix:
    """How the files of a process begin."""

    prefix: str


class FileSystemWriter(StorageWriter):
    """Writes checkpoints into a folder.

    Args:
        path: The folder; it is made.
        overwrite: Write where a checkpoint is already.
        single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, cache_staged_state_dict: Accepted.

    Example:
        >>> save({"model": net.state_dict()}, storage_writer=FileSystemWriter("folder"))  # doctest: +SKIP
    """

    SETTINGS = frozenset({
        "single_file_per_rank", "sync_files", "thread_count", "per_thread_copy_ahead", "cache_staged_state_dict",
        "overwrite",
    })  # fmt: skip

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        **_others: Any,
    ) -> None:
        self.path, self.overwrite, self.sync_files = self._place(path), overwrite, sync_files
        self.save_id = str(uuid.uuid4())

    def _place(self, path: Any) -> Any:
        """What is written to."""
        return Path(path)

    def _replacing(self, place: Any) -> Any:
        """A file to write, for a `with` block; it gets its name when it is whole."""
        return files.replacing(place)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins a checkpoint."""
        if checkpoint_id:
            self.path = self._place(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Is told whether this process leads."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Makes the folder.

        Raises:
            RuntimeError: There is a checkpoint already, which must not be written over.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _METADATA).exists() and not self.overwrite:
            raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Names the files of each process."""
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            if plan.storage_data is None
            else plan
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Writes the file of this process."""
        name = f"{plan.storage_data.prefix}0{_SUFFIX}"
        results = []
        future: Future = Future()
        if plan.items:
            with self._replacing(self.path / name) as file:
                for item in sorted(plan.items, key=lambda i: i.type is not WriteItemType.BYTE_IO):
                    start, data = file.tell(), planner.resolve_data(item)
                    if item.type is WriteItemType.BYTE_IO:
                        file.write(data.getbuffer())
                    else:
                        stream = io.BytesIO()
                        torch.save(data.detach().cpu().clone(), stream, format="torch")
                        file.write(stream.getbuffer())
                    length = file.tell() - start
                    results.append(WriteResult(item.index, length, _StorageInfo(name, start, length)))
        future.set_result(results)
        return future

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes what the checkpoint holds."""
        found = {result.index: result.storage_data for each in results for result in each}
        metadata = dataclasses.replace(
            metadata, version=_VERSION, storage_data=found, storage_meta=self.storage_meta()
        )
        with self._replacing(self.path / _METADATA) as file:
            _Writer(file).dump(metadata)

    def storage_meta(self) -> StorageMeta | None:
        """About the checkpoint."""
        return StorageMeta(checkpoint_id=str(self.path), save_id=self.save_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it is a path."""
        return isinstance(checkpoint_id, os.PathLike) or "://" not in str(checkpoint_id)


class FileSystemReader(StorageReader):
    """Reads checkpoints from a folder, PyTorch's too.

    Args:
        path: The folder.

    Example:
        >>> load(state, storage_reader=FileSystemReader("folder"))  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike, **_others: Any) -> None:
        self.path = self._place(path)
        self.storage_data: dict[Any, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())

    def _place(self, path: Any) -> Any:
        """What is read from."""
        return Path(path)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: Any = None) -> None:
        """Begins to read a checkpoint."""
        self.storage_data = {}
        if checkpoint_id:
            self.path = self._place(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint holds."""
        with (self.path / _METADATA).open("rb") as file:
            found: Metadata = _Reader(file).load()
        found.storage_meta = found.storage_meta or StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Gets what the checkpoint holds."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Reads, file by file."""
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in by_file.items():
            self._read_file(name, items, planner)
        future: Future = Future()
        future.set_result(None)
        return future

    def _read_file(self, name: str, items: list[Any], planner: LoadPlanner) -> None:
        with (self.path / name).open("rb") as file:
            for item in sorted(items, key=lambda i: self.storage_data[i.storage_index].offset):
                place = self.storage_data[item.storage_index]
                file.seek(place.offset)
                content = io.BytesIO(file.read(place.length))
                if item.type is LoadItemType.BYTE_IO:
                    planner.load_bytes(item, content)
                else:
                    take(planner, item, torch.load(content, map_location="cpu", weights_only=True))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Whether it is a path."""
        return isinstance(checkpoint_id, os.PathLike) or "://" not in str(checkpoint_id)


def take(planner: LoadPlanner, item: Any, stored: Any) -> None:
    """Copies the part of what was stored that an item asks for to where the planner wants it."""
    value = narrow_tensor_by_index(stored, item.storage_offsets, item.lengths)
    target = planner.resolve_tensor(item).detach()
    if tuple(target.shape) != tuple(value.shape):
        raise AssertionError(
            f"req {item.storage_index} mismatch sizes {tuple(target.shape)} vs {tuple(value.shape)}"
        )
    with torch.no_grad():
        target.copy_(value)
    planner.commit_tensor(item, target)


# What a checkpoint holds is stored by pickling, with classes under the names that PyTorch gives them.


class _Named:
    """A function or class by its name in PyTorch."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Never called: pickling wants functions to be callable."""


class _Writer(pickle._Pickler):  # type: ignore[name-defined, misc]
    def __init__(self, file: Any) -> None:
        super().__init__(file, 2)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Named):
            self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, torch.dtype):
            self.write(b"c" + f"torch\n{str(obj).rpartition('.')[2]}\n".encode())
        elif isinstance(obj, torch.layout):
            name = f"torch.{str(obj).rpartition('.')[2]}"
            self.save_reduce(_Named("torch.serialization", "_get_layout"), (name,), obj=obj)
        elif isinstance(obj, torch.Size):
            self.save_reduce(_Named("torch", "Size"), (tuple(obj),), obj=obj)
        else:
            super().save(obj, save_persistent_id)

    def save_global(self, obj: Any, name: Any = None) -> None:
        home = obj.__module__
        if home.startswith(("taeda.", "torch.")):
            self.write(b"c" + f"torch{home[5:]}\n{obj.__qualname__}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    dispatch = {**DISPATCH, type: lambda self, obj: self.save_global(obj)}


_ALLOWED = frozenset({"builtins", "collections", "pathlib", "copyreg", "_codecs", "pathlib._local"})


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch.serialization" and name == "_get_layout":
            return lambda text: getattr(torch, text.rpartition(".")[2])
        if module == "torch" or module.startswith("torch."):
            from importlib import import_module

            found: Any = import_module("taeda" + module[5:])
            for part in name.split("."):
                found = getattr(found, part)
            return found
        if module in _ALLOWED:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"a checkpoint's metadata names {module}.{name}, which is not among its classes"
        )
