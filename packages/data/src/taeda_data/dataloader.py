"""``utils.data.dataloader``: where programs import the loader, its passes and its collation from."""

from collections.abc import Callable
from typing import Any, TypeAlias

from taeda_data.collate import default_collate, default_convert
from taeda_data.dataset import Dataset, IterableDataset, T_co
from taeda_data.dataset import _T_co as _T_co
from taeda_data.iterators import BaseDataLoaderIter as _BaseDataLoaderIter
from taeda_data.iterators import DatasetKind as _DatasetKind
from taeda_data.iterators import MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter
from taeda_data.iterators import SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter
from taeda_data.loader import DataLoader
from taeda_data.reading import get_worker_info
from taeda_data.sampler import BatchSampler, NoIndices, RandomSampler, Sampler, SequentialSampler

_InfiniteConstantSampler = NoIndices


def _sharding_worker_init_fn(
    worker_init_fn: Callable[[int], None] | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """Let a worker's pipe give its share of what all workers of all processes read.

    Raises:
        AssertionError: It is not called in a worker, or the data set is no pipe.
    """
    from taeda_data.datapipes import IterDataPipe, MapDataPipe
    from taeda_data.datapipes.datapipe import steps_of

    info = get_worker_info()
    assert info is not None, "_sharding_worker_init_fn: called outside of a worker"
    assert isinstance(info.dataset, IterDataPipe | MapDataPipe), (
        "_sharding_worker_init_fn: the data set is no pipe"
    )
    for step in steps_of(info.dataset):
        if hasattr(step, "apply_sharding"):
            step.apply_sharding(info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


_collate_fn_t: TypeAlias = Callable[[list[Any]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "T_co",
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_InfiniteConstantSampler",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "_collate_fn_t",
    "_sharding_worker_init_fn",
    "_worker_init_fn_t",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
