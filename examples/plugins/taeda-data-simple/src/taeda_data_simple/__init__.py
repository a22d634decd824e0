"""A small provider of slot ``data``: data sets, orders, batches and a loader for one process."""

from taeda_data_simple.datasets import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from taeda_data_simple.loader import DataLoader, default_collate
from taeda_data_simple.samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler

__version__ = "0.1.0"
__taeda_interface__ = {"data": "1.0"}

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "TensorDataset",
    "default_collate",
    "random_split",
]
