"""Steps that all processes take together, and of which all hear when one fails."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import taeda.distributed as dist
from taeda.distributed.checkpoint.api import CheckpointException


class Together:
    """The processes of a saving or a loading.

    Args:
        group: The processes; None for all.
        alone: Do without others, though there may be a group.
    """

    def __init__(self, group: Any = None, alone: bool = False) -> None:
        self.group = group
        self.many = dist.is_initialized() and not alone
        self.rank = dist.get_rank(group) if self.many else 0
        self.size = dist.get_world_size(group) if self.many else 1

    @property
    def leads(self) -> bool:
        """Whether this process decides for all."""
        return self.rank == 0

    def _every(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, self.group)
        return found

    def _tried(self, step: Callable[[], Any]) -> tuple[Any, Any]:
        try:
            return step(), None
        except Exception as error:
            return None, (error, traceback.format_exc())

    def everywhere(self, name: str, step: Callable[[], Any]) -> list[Any]:
        """What a step gives in each process.

        Raises:
            CheckpointException: It failed in one of them.
        """
        made, failure = self._tried(step)
        found = self._every((made, _sendable(failure)))
        self._check(name, [item[1] for item in found])
        return [item[0] for item in found]

    def decided(self, name: str, step: Callable[[], Any]) -> Any:
        """What a step gives in the process that leads.

        Raises:
            CheckpointException: It failed there.
        """
        box = [self._tried(step) if self.leads else (None, None)]
        box = [(box[0][0], _sendable(box[0][1]))]
        if self.size > 1:
            source = 0 if self.group is None else dist.get_global_rank(self.group, 0)
            dist.broadcast_object_list(box, source, self.group)
        self._check(name, [box[0][1]])
        return box[0][0]

    @staticmethod
    def _check(name: str, failures: list[Any]) -> None:
        found = {rank: failure for rank, failure in enumerate(failures) if failure is not None}
        if found:
            raise CheckpointException(name, found)


def _sendable(failure: Any) -> Any:
    """The error, or one like it where it cannot be sent."""
    import pickle

    if failure is None:
        return None
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:
        return RuntimeError(f"{type(failure[0]).__name__}: {failure[0]}"), failure[1]
    return failure
