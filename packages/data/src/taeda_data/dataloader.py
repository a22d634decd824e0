"""``utils.data.dataloader``: where programs import the loader, its passes and its collation from."""

from collections.abc import Callable
from typing import Any, TypeAlias

from taeda_data.collate import default_collate, default_convert
from taeda_data.dataset import Dataset, IterableDataset
from taeda_data.iterators import BaseDataLoaderIter as _BaseDataLoaderIter
from taeda_data.iterators import DatasetKind as _DatasetKind
from taeda_data.iterators import MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter
from taeda_data.iterators import SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter
from taeda_data.loader import DataLoader
from taeda_data.reading import get_worker_info
from taeda_data.sampler import BatchSampler, NoIndices, RandomSampler, Sampler, SequentialSampler

_InfiniteConstantSampler = NoIndices
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
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_InfiniteConstantSampler",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "_collate_fn_t",
    "_worker_init_fn_t",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
