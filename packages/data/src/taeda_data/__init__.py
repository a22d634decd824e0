"""Data sets, the order in which they are read, and batches."""

from taeda_data.collate import default_collate, default_convert
from taeda_data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from taeda_data.loader import DataLoader
from taeda_data.packing import SharedList
from taeda_data.reading import get_worker_info, worker_rng
from taeda_data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__version__ = "0.1.0"
__taeda_interface__ = {"data": "1.0"}

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SharedList",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
    "worker_rng",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in (
        "_utils",
        "dataloader",
        "datapipes",
        "distributed",
    ):  # programs reach them without importing them
        return import_module(f"{__name__}.{name}")
    if name == "default_collate_fn_map":
        return import_module(f"{__name__}.collate").default_collate_fn_map
    if name == "_DatasetKind":
        return import_module(f"{__name__}.dataloader")._DatasetKind
    if name in ("DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"):
        return getattr(import_module(f"{__name__}.datapipes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
