"""The loader: indices become samples, samples become batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from taeda_data_simple.datasets import IterableDataset
from taeda_data_simple.samplers import BatchSampler, RandomSampler, SequentialSampler
from taeda_registry.slots import tensor


def default_collate(batch: list[Any]) -> Any:
    """Joins samples along a new first dimension, through nested containers.

    Args:
        batch: tensors, arrays, numbers, strings, or containers of them, all of one form.

    Returns:
        A tensor for tensors, arrays and numbers (float64 for Python floats), a list for strings, a container of
        these for containers.

    Raises:
        TypeError: samples of another type. ValueError: sequences of different lengths.
    """
    first = batch[0]
    if isinstance(first, tensor.Tensor):
        return tensor.stack(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        return tensor.as_tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return tensor.tensor(batch, dtype=tensor.float64 if isinstance(first, float) else None)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, (list, tuple)):
        lengths = {len(sample) for sample in batch}
        if len(lengths) != 1:
            raise ValueError(f"default_collate: expected sequences of one length, found {sorted(lengths)}")
        columns = [default_collate(list(column)) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(f"default_collate: expected tensors, numbers or containers, found {type(first).__name__}")


class DataLoader:
    """Iterates over a data set in batches, in this process.

    Args:
        dataset: a data set with ``__getitem__`` and ``__len__``, or an `IterableDataset`.
        batch_size: samples in a batch; None gives single samples.
        shuffle: read in random order.
        sampler: another order.
        batch_sampler: lists of indices; excludes batch_size, shuffle, sampler and drop_last.
        collate_fn: joins a list of samples.
        drop_last: leave out a last batch that is not full.
        generator: source of the order.
        num_workers: 0.

    Raises:
        ValueError: options that exclude each other.
        NotImplementedError: worker processes.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        drop_last: bool = False,
        generator: Any = None,
    ) -> None:
        if num_workers:
            raise NotImplementedError(f"DataLoader: argument 'num_workers' must be 0, found {num_workers}")
        stream = isinstance(dataset, IterableDataset)
        if (shuffle or batch_sampler is not None) and (stream or sampler is not None):
            raise ValueError(
                "DataLoader: shuffle, sampler, batch_sampler and an IterableDataset exclude each other"
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
            raise ValueError(
                "DataLoader: argument 'batch_sampler' excludes batch_size, shuffle and drop_last"
            )
        self.dataset, self.batch_size = dataset, batch_size
        if sampler is None:
            chosen = RandomSampler(dataset, generator=generator) if shuffle else None
            sampler = dataset if stream else chosen or SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (
            default_collate if batch_sampler is not None else lambda sample: sample
        )

    def __iter__(self) -> Iterator[Any]:
        read = (lambda item: item) if isinstance(self.dataset, IterableDataset) else self.dataset.__getitem__
        if self.batch_sampler is None:
            return (self.collate_fn(read(index)) for index in self.sampler)
        return (self.collate_fn([read(index) for index in batch]) for batch in self.batch_sampler)

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
