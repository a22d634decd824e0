"""Saving what several processes have."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

import taeda as torch
import taeda.distributed as dist
from taeda.distributed.checkpoint._fsspec_filesystem import writer_of
from taeda.distributed.checkpoint._together import Together
from taeda.distributed.checkpoint.default_planner import DefaultSavePlanner
from taeda.distributed.checkpoint.metadata import Metadata
from taeda.distributed.checkpoint.planner import SavePlanner
from taeda.distributed.checkpoint.staging import AsyncStager, copied
from taeda.distributed.checkpoint.stateful import Stateful
from taeda.distributed.checkpoint.storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """What saves beside the program: a thread serves both."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """When a copy was made, and when it was written."""

    staging_completion: Future
    upload_completion: Future


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Saves a state: each process writes its parts of tensors; what all have is written once.

    Args:
        state_dict: Names and values, which may be nested; objects with a `state_dict` are asked for it.
        checkpoint_id: A folder.
        storage_writer: Where it is written; a `FileSystemWriter` of the folder unless given.
        planner: What is written; a `DefaultSavePlanner` unless given.
        process_group: The processes; None for all.
        no_dist: Save what this process has, without others.
        use_collectives: Accepted.

    Returns: what the checkpoint holds.

    Raises:
        RuntimeError: Neither a folder nor a writer is given. CheckpointException: It failed in one process.

    Example:
        >>> save({"model": net.state_dict()}, checkpoint_id="folder")  # doctest: +SKIP
    """
    return _save(
        _asked(state_dict), _writer(storage_writer, checkpoint_id), planner, Together(process_group, no_dist)
    )


def _writer(given: StorageWriter | None, place: Any) -> StorageWriter:
    if given is None:
        if place is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        return writer_of(place)
    given.reset(place)
    return given


def _asked(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value.state_dict()
        if isinstance(value, Stateful) and not isinstance(value, torch.Tensor)
        else value
        for key, value in state_dict.items()
    }


def _save(
    state: dict[str, Any], writer: StorageWriter, planner: SavePlanner | None, group: Together
) -> Metadata:
    plans = planner or DefaultSavePlanner()
    written: list[Any] = []

    def local() -> Any:
        plans.set_up_planner(state, writer.storage_meta(), group.leads)
        writer.set_up_storage_writer(group.leads)
        return writer.prepare_local_plan(plans.create_local_plan())

    every = group.everywhere("plan", local)

    def merge() -> Any:
        merged, metadata = plans.create_global_plan(every)
        return writer.prepare_global_plan(merged), metadata

    merged, metadata = group.decided("plan", merge)

    def write() -> Any:
        done = writer.write_data(plans.finish_plan(merged[group.rank]), plans)
        done.wait()
        return done.value()

    written = group.everywhere("write", write)
    group.decided("write", lambda: writer.finish(metadata, written))
    return metadata


_one_thread: list[ThreadPoolExecutor] = []
_groups: dict[Any, Any] = {}


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """`save` of a copy, beside the program.

    Args:
        async_stager: Makes the copy, as a `staging.DefaultStager`; the program closes it.

    The other arguments are those of `save`.

    Returns: a future of what the checkpoint holds; with one for the copy where the stager gives a future.

    Example:
        >>> done = async_save({"model": net.state_dict()}, checkpoint_id="folder")  # doctest: +SKIP
        >>> done.result()  # doctest: +SKIP
    """
    if not _one_thread:
        _one_thread.append(ThreadPoolExecutor(1, "taeda-checkpoint"))
    stager = async_stager or (storage_writer if isinstance(storage_writer, AsyncStager) else None)
    copy = copied(_asked(state_dict)) if stager is None else stager.stage(_asked(state_dict))
    group = process_group
    if dist.is_initialized() and not no_dist:
        # What the program does meanwhile must not be mistaken for what this does.
        key = (id(dist.group.WORLD), id(process_group))
        if key not in _groups:
            _groups[key] = dist.new_group(None if group is None else dist.get_process_group_ranks(group))
        group = _groups[key]
    writer = _writer(storage_writer, checkpoint_id)
    together = Together(group, no_dist)
    if isinstance(copy, Future):
        done = _one_thread[0].submit(lambda: _save(copy.result(), writer, planner, together))
    else:
        done = _one_thread[0].submit(_save, copy, writer, planner, together)
    if stager is not None and stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return AsyncSaveResponse(copy, done) if isinstance(copy, Future) else done


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Older name of `save`."""
    storage_writer.reset()
    return _save(state_dict, storage_writer, planner, Together(process_group, no_dist))
