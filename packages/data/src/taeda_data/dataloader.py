"""``utils.data.dataloader``: where programs import the loader, its passes and its collation from."""

from taeda_data.collate import default_collate, default_convert
from taeda_data.iterators import BaseDataLoaderIter as _BaseDataLoaderIter
from taeda_data.iterators import DatasetKind as _DatasetKind
from taeda_data.iterators import MultiProcessingDataLoaderIter as _MultiProcessingDataLoaderIter
from taeda_data.iterators import SingleProcessDataLoaderIter as _SingleProcessDataLoaderIter
from taeda_data.loader import DataLoader
from taeda_data.reading import get_worker_info

__all__ = [
    "DataLoader",
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
