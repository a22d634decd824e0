"""How a loader gets batches out of a data set, and which sample is being read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

from taeda_data.collate import default_collate
from taeda_data.dataset import Dataset, Subset, TensorDataset
from taeda_registry.slots import tensor

_current = threading.local()


def worker_rng() -> Any:
    """A generator for the sample being read: the same in every run with the same seed, in whatever order.

    To be called by a data set's ``__getitem__`` (or collate function) while a `DataLoader` reads. It depends on the
    loader's seed of the epoch and on the sample's index, on nothing else.

    Returns:
        A new Generator.

    Raises:
        RuntimeError: no loader is reading in this thread.

    Example:
        >>> class Noisy(Dataset):
        ...     def __getitem__(self, i):
        ...         return taeda.randn(3, generator=worker_rng())
    """
    key = getattr(_current, "key", None)
    if key is None:
        raise RuntimeError(
            "worker_rng: expected to be called while a DataLoader reads a sample, found no such"
        )
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return tensor.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


def get_worker_info() -> None:
    """What a worker process is told about itself; None in the main process."""
    return


class Reader:
    """Reads the groups of indices of one epoch.

    Args:
        dataset: an indexed data set.
        collate: joins a list of samples.
        batched: whether a group is a list of indices, or one index.
        seed: the epoch's.
    """

    def __init__(
        self, dataset: Dataset[Any], collate: Callable[[Any], Any], batched: bool, seed: int
    ) -> None:
        self._dataset, self._collate, self._seed = dataset, collate, seed
        self._gather = gather_of(dataset) if collate is default_collate else None
        # The plain functions: a bound method here would hold its own reader, and with it the data set, in a ring.
        many = hasattr(dataset, "__getitems__")
        self._read = (Reader._many if many else Reader._one_by_one) if batched else Reader._single

    def __call__(self, group: Any) -> Any:
        """The batch (or sample) of a group; errors keep their type and get a note."""
        if self._gather is not None and _plain(group):
            return self._noted(self._gather, group, group)
        try:
            return self._read(self, group)
        finally:
            _current.key = None

    def _single(self, index: Any) -> Any:
        return self._noted(self._collate, self._sample(index), index)

    def _one_by_one(self, indices: Any) -> Any:
        samples = [self._sample(index) for index in indices]
        return self._noted(self._collate, samples, indices)

    def _many(self, indices: Any) -> Any:
        _current.key = (self._seed, tuple(indices))
        samples = self._noted(self._dataset.__getitems__, indices, indices)  # type: ignore[attr-defined]
        if len(samples) != len(indices):
            raise ValueError(
                f"DataLoader: {type(self._dataset).__name__}.__getitems__ returned {len(samples)} samples, "
                f"expected {len(indices)}"
            )
        return self._noted(self._collate, samples, indices)

    def _sample(self, index: Any) -> Any:
        _current.key = (self._seed, index)
        return self._noted(self._dataset.__getitem__, index, index)

    def _noted(self, call: Callable[[Any], Any], argument: Any, index: Any) -> Any:
        try:
            return call(argument)
        except Exception as error:
            what = "joining the samples" if call is self._collate else "reading sample"
            error.add_note(f"while {what} {index!r} of {type(self._dataset).__name__}")
            raise


def _plain(group: Any) -> bool:
    return isinstance(group, list) and all(type(i) is int and i >= 0 for i in group)


def gather_of(dataset: Dataset[Any]) -> Callable[[list[int]], list[Any]] | None:
    """How to take a whole batch out of a data set at once, where reading sample by sample means nothing else."""
    if type(dataset) is TensorDataset:
        return dataset.gather
    if type(dataset) is Subset and (inner := gather_of(dataset.dataset)) is not None:
        indices = dataset.indices
        return lambda places: inner([indices[i] for i in places])
    return None
