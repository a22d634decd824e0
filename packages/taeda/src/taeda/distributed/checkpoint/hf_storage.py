"""Checkpoints as safetensors in a folder, with the files' names and index that the Hugging Face Hub has."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from taeda.distributed.checkpoint._hf_utils import (
    INDEX,
    OFFSETS,
    SHARDING,
    _HFStorageInfo,
    file_name,
    parts_in,
    write_file,
    write_index,
)
from taeda.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, take
from taeda.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from taeda.distributed.checkpoint.planner import LoadPlanner, SavePlan, SavePlanner, WriteItemType
from taeda.distributed.checkpoint.storage import WriteResult
from taeda.futures import Future

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into files of safetensors.

    Args:
        path: The folder; it is made.
        fqn_to_index_mapping: The number of the file, from 1, for each tensor; one file unless given.
        thread_count, thread_count_consolidation: Accepted.
        save_distributed: Each process writes the parts that it has, into files of its own.
        enable_consolidation: Those are written into `path`/sharded, and put together in `path`.

    Raises:
        TypeError: Something that is no tensor is to be written.

    Example:
        >>> save(net.state_dict(), storage_writer=HuggingFaceStorageWriter("folder"))  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping, self.save_distributed = fqn_to_index_mapping, save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self.consolidated_output_path = str(self.path) if enable_consolidation else None
        if enable_consolidation:
            self.path = self.path / "sharded"

    @property
    def metadata_path(self) -> str:
        """The file that says in which file a tensor is."""
        return INDEX

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Names the files of each process."""
        facts = (
            {} if self.fqn_to_index_mapping is None else {"fqn_to_index_mapping": self.fqn_to_index_mapping}
        )
        return [
            dataclasses.replace(
                plan, storage_data=facts | ({"shard_index": i} if self.save_distributed else {})
            )
            for i, plan in enumerate(plans, 1)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Writes the files of this process."""
        numbers = plan.storage_data.get("fqn_to_index_mapping")
        by_file: dict[int, list[Any]] = {}
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise TypeError(
                    f"HuggingFaceStorageWriter: {item.index.fqn!r} is no tensor, and files of safetensors hold "
                    "nothing else"
                )
            by_file.setdefault(numbers[item.index.fqn] if numbers else 1, []).append(item)
        results = []
        for number, items in by_file.items():
            name = file_name(
                number, max(numbers.values()) if numbers else 1, plan.storage_data.get("shard_index")
            )
            tensors = {item.index.fqn: planner.resolve_data(item).detach().cpu().clone() for item in items}
            offsets = {item.index.fqn: {OFFSETS: list(item.tensor_data.chunk.offsets)} for item in items}
            facts = {SHARDING: json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}
            write_file(self.path / name, tensors, facts)
            results += [
                WriteResult(
                    item.index,
                    tensors[item.index.fqn].nbytes,
                    _HFStorageInfo(name, tensors[item.index.fqn].shape, tensors[item.index.fqn].dtype),
                )
                for item in items
            ]
        future: Future = Future()
        future.set_result(results)
        return future

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Writes which tensor is where; parts of tensors are put together first, if that is wanted."""
        if self.save_distributed:
            if self.enable_consolidation:
                numbers = self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1)
                consolidate_safetensors_files(str(self.path), str(self.consolidated_output_path), numbers)
            return
        written = [result for each in results for result in each]
        places = {result.index.fqn: result.storage_data.relative_path for result in written}
        write_index(self.path, places, sum(result.size_in_bytes for result in written))


class HuggingFaceStorageReader(FileSystemReader):
    """Reads tensors from files of safetensors, also those that hold parts of tensors.

    Args:
        path: The folder.
        thread_count: Accepted.

    Example:
        >>> load(state, storage_reader=HuggingFaceStorageReader("folder"))  # doctest: +SKIP
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the files hold, by their heads."""
        found: dict[str, TensorStorageMetadata] = {}
        places: dict[MetadataIndex, _HFStorageInfo] = {}
        for name, key, offsets, sizes, dtype in parts_in(self.path):
            chunk = ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))
            ends = [at + size for at, size in zip(offsets, sizes, strict=True)]
            if key in found:
                found[key].chunks.append(chunk)
                found[key].size = torch.Size(map(max, found[key].size, ends))
            else:
                found[key] = TensorStorageMetadata(TensorProperties(dtype), torch.Size(ends), [chunk])
            places[MetadataIndex(key, offsets)] = _HFStorageInfo(name, torch.Size(sizes), dtype)
        meta = StorageMeta(checkpoint_id=str(self.path), load_id=self.load_id)
        return Metadata(found, storage_data=places, storage_meta=meta)

    def _read_file(self, name: str, items: list[Any], planner: LoadPlanner) -> None:
        tensors = torch.load(self.path / name, map_location="cpu", weights_only=True)
        for item in items:
            take(planner, item, tensors[item.storage_index.fqn])
