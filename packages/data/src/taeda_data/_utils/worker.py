"""What workers of a loader know about themselves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from taeda_data.reading import WorkerInfo, get_worker_info

__all__ = [
    "ManagerWatchdog",
    "WorkerInfo",
    "_IterableDatasetStopIteration",
    "_ResumeIteration",
    "_generate_state",
    "get_worker_info",
]

#: What a program's own worker is told about itself; workers of the loader have it by thread.
_worker_info: WorkerInfo | None = None


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that follow from the seed of an epoch and a worker's number, for NumPy's generator."""
    import numpy

    entropy: Any = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in numpy.random.SeedSequence(entropy).generate_state(4)]


class ManagerWatchdog:
    """Whether the process that started this one still lives."""

    def __init__(self) -> None:
        self.manager_pid, self.manager_dead = os.getppid(), False

    def is_alive(self) -> bool:
        """Whether it does; once it was gone it stays so."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's iterable data set has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Workers begin to read anew; the first one's choices are shared."""

    seed: int | None = None
