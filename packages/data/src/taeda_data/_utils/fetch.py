"""Reads what a loader asks for: samples of a list of indices, or the next of a data set that only iterates."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher:
    """Reads and joins.

    Args:
        dataset: What is read.
        auto_collation: Whether several samples are joined.
        collate_fn: Joins them, or changes the single sample.
        drop_last: Leave out a last batch that is not full.
    """

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Samples by their indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch of a list of indices, or the sample of one."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if hasattr(self.dataset, "__getitems__") and self.dataset.__getitems__:
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Samples in the data set's own order."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter, self.ended = iter(dataset), False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """As many samples as there are indices, or one.

        Raises:
            StopIteration: There are no more.
        """
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        data = list(itertools.islice(self.dataset_iter, wanted))
        self.ended = len(data) < wanted
        if not data or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(data)
