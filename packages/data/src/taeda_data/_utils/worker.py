"""What workers of a loader know about themselves."""

from __future__ import annotations

from typing import Any

from taeda_data.reading import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits that follow from the seed of an epoch and a worker's number, for NumPy's generator."""
    import numpy

    entropy: Any = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in numpy.random.SeedSequence(entropy).generate_state(4)]
