"""From checkpoints of several processes to files of one, and back."""

from __future__ import annotations

import os
from typing import Any

import taeda as torch
from taeda.distributed.checkpoint.default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from taeda.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from taeda.distributed.checkpoint.state_dict_loader import _load_state_dict
from taeda.distributed.checkpoint.state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write a checkpoint of several processes as one file for `load`.

    Args:
        dcp_checkpoint_dir: The folder of the checkpoint.
        torch_save_path: The file.
    """
    found: dict[str, Any] = {}
    _load_state_dict(
        found, FileSystemReader(dcp_checkpoint_dir), planner=_EmptyStateDictLoadPlanner(), no_dist=True
    )
    torch.save(found, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write a file of `save` as a checkpoint of several processes.

    Args:
        torch_save_path: The file.
        dcp_checkpoint_dir: The folder of the checkpoint.
    """
    state = torch.load(torch_save_path, weights_only=False)
    save(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Reads what the state to be loaded has."""
