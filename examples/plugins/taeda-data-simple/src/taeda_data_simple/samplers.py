"""Orders in which data sets are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from taeda_registry.slots import tensor


class Sampler:
    """Base class of orders of indices."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")


class SequentialSampler(Sampler):
    """Indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in random order, or drawn with replacement.

    Args:
        data_source: a data set with a length.
        replacement: whether an index may come more than once.
        num_samples: how many indices to give; the length by default.
        generator: source of the order; the default generator by default.
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        if self.replacement:
            return iter(tensor.randint(0, n, (self.num_samples,), generator=self.generator).tolist())
        return iter(tensor.randperm(n, generator=self.generator).tolist()[: self.num_samples])

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of indices of a given size.

    Args:
        sampler: an order.
        batch_size: how many indices make a batch.
        drop_last: leave out a last batch that is not full.

    Raises:
        ValueError: a batch_size below 1.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise ValueError(f"BatchSampler: argument 'batch_size' must be at least 1, found {batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
