"""States of optimizers that lie over processes."""

from __future__ import annotations

from typing import Any

from taeda.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict: dict[str, Any], optimizer_key: str, storage_reader: Any, planner: Any = None
) -> dict[str, Any]:
    """The state of an optimizer in a checkpoint, of whole tensors.

    Args:
        model_state_dict: Accepted.
        optimizer_key: Its name in the checkpoint.
        storage_reader: The checkpoint.
    """
    return _load_state_dict_from_keys(optimizer_key, storage_reader=storage_reader)
