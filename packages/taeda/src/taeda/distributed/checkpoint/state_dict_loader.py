"""Loading what several processes have saved, which may have been others."""

from __future__ import annotations

import os
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint._fsspec_filesystem import reader_of
from taeda.distributed.checkpoint._together import Together
from taeda.distributed.checkpoint.default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from taeda.distributed.checkpoint.planner import LoadPlanner
from taeda.distributed.checkpoint.stateful import Stateful
from taeda.distributed.checkpoint.storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Loads a state into the tensors that are there; each process reads what it needs, whoever wrote it.

    Args:
        state_dict: What is to be loaded; tensors are written in place, other values replaced. Objects with a
            `state_dict` are asked for it and get it back.
        checkpoint_id: The folder.
        storage_reader: Where it is read; a `FileSystemReader` of the folder unless given.
        planner: What is read; a `DefaultLoadPlanner` unless given.
        process_group: The processes; None for all.
        no_dist: Load without others.

    Raises:
        RuntimeError: Neither a folder nor a reader is given. CheckpointException: The checkpoint lacks a name, has
            a tensor of another shape, or it failed otherwise in one process.

    Example:
        >>> load(state, checkpoint_id="folder")  # doctest: +SKIP
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        storage_reader = reader_of(checkpoint_id)
    else:
        storage_reader.reset(checkpoint_id)
    group = Together(process_group, no_dist)
    keys = sorted({key for each in group.everywhere("keys", lambda: list(state_dict)) for key in each})
    own: dict[str, Any] = {}
    for key in keys:
        if key in state_dict:
            value = state_dict[key]
            holds = isinstance(value, Stateful) and not isinstance(value, torch.Tensor)
            own[key] = value.state_dict() if holds else value
    _load_state_dict(own, storage_reader, process_group, planner=planner, no_dist=no_dist)
    for key in keys:
        if key not in state_dict:
            continue
        value = state_dict[key]
        if isinstance(value, Stateful) and not isinstance(value, torch.Tensor):
            value.load_state_dict(own[key])
        else:
            state_dict[key] = own[key]


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    plans, group = planner or DefaultLoadPlanner(), Together(process_group, no_dist)

    def local() -> Any:
        metadata = storage_reader.read_metadata()
        plans.set_up_planner(state_dict, metadata, group.leads)
        storage_reader.set_up_storage_reader(metadata, group.leads)
        return storage_reader.prepare_local_plan(plans.create_local_plan())

    every = group.everywhere("plan", local)
    merged = group.decided(
        "plan", lambda: storage_reader.prepare_global_plan(plans.create_global_plan(every))
    )

    def read() -> None:
        storage_reader.read_data(plans.finish_plan(merged[group.rank]), plans).wait()

    group.everywhere("read", read)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Older name of `load`."""
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """A whole checkpoint, or what `keys` name of it, as a dict of whole tensors."""
    reader = storage_reader
    if reader is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        reader = reader_of(checkpoint_id)
    wanted = {keys} if isinstance(keys, str) else keys
    found: dict[str, Any] = {}
    _load_state_dict(found, reader, process_group, planner=_EmptyStateDictLoadPlanner(wanted))
    return found
