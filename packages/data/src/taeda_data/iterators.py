"""What ``iter`` of a loader gives, as classes that programs ask for and make themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from taeda_data.dataset import IterableDataset
from taeda_data.pinning import pinner
from taeda_data.randomness import draw_seed
from taeda_data.reading import Failed


class DatasetKind:
    """Whether samples are asked for by index or come in an order of their own."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> Any:
        """What reads a data set of that kind."""
        from taeda_data._utils import fetch

        made = fetch._MapDatasetFetcher if kind == DatasetKind.Map else fetch._IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)


# Attributes of a pass that programs read, and what its loader calls them.
_OF_LOADER = {
    "_dataset": "dataset", "_num_workers": "num_workers", "_drop_last": "drop_last", "_timeout": "timeout",
    "_collate_fn": "collate_fn", "_index_sampler": "_index_sampler", "_auto_collation": "_auto_collation",
    "_dataset_kind": "_dataset_kind",
}  # fmt: skip


class BaseDataLoaderIter(Iterator[Any]):
    """The batches of one pass over a `DataLoader`. Threads may share it: each batch goes to one of them.

    Args:
        loader: A `DataLoader`, or an object that has its attributes: ``dataset``, ``_dataset_kind``,
            ``_auto_collation``, ``_index_sampler``, ``collate_fn``, ``num_workers`` and those that go with it.

    Example:
        >>> next(iter(DataLoader(range(4), batch_size=2)))
        tensor([0, 1])
    """

    def __init__(self, loader: Any) -> None:
        self._turn = threading.RLock()
        if type(self)._next_data is not BaseDataLoaderIter._next_data:
            self._begin_own(loader)
            return
        self._loader = loader if hasattr(loader, "_start") else as_loader(loader)
        # Programs that save their place read how many batches there were, and pass over so many of the sampler's.
        self._num_yielded = 0
        self._batches, self._sampler_iter = self._loader._start()

    def _begin_own(self, loader: Any) -> None:
        """The attributes that subclasses read which get their batches themselves, by ``_next_data``.

        The loader itself is not among them: it often keeps the pass, whose workers end when nothing does.
        """
        for name, of_loader in _OF_LOADER.items():
            setattr(self, name, getattr(loader, of_loader))
        self._persistent_workers, self._prefetch_factor = loader.persistent_workers, loader.prefetch_factor
        self._pin_memory_device = loader.pin_memory_device or None
        self._pin_memory = pinner(loader.pin_memory, loader.pin_memory_device) is not None
        self._world_size, self._rank, self._shared_seed, self._pg = 1, 0, None, None
        self._base_seed = draw_seed(loader.generator)
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        BaseDataLoaderIter._reset(self, loader, first_iter=True)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begin the order anew, for a subclass that gets its batches itself."""
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        self._IterableDataset_len_called = getattr(loader, "_IterableDataset_len_called", None)

    def _next_index(self) -> Any:
        """The next indices; StopIteration behind the last."""
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        """The next batch; StopIteration behind the last. A subclass may get it in another way."""
        batch = next(self._batches)
        if type(batch) is Failed:
            raise batch.error
        return batch

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_LOADER or "_loader" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._loader, _OF_LOADER[name])

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._turn:
            batch = self._next_data()
            self._num_yielded += 1
            return batch

    def __len__(self) -> int:
        """Number of batches of the whole pass."""
        return len(self._loader if "_loader" in self.__dict__ else self._index_sampler)

    def close(self) -> None:
        """End the pass; what it holds is given back."""
        self._batches.close()

    _shutdown_workers = close


class SingleProcessDataLoaderIter(BaseDataLoaderIter):
    """A pass whose batches are read in this thread."""


class MultiProcessingDataLoaderIter(BaseDataLoaderIter):
    """A pass whose batches are read by workers."""

    def _shutdown_workers(self) -> None:
        """End the pass and its workers, those that would have stayed for the next pass too."""
        self.close()
        self._loader._dismiss()


class _Iterated(IterableDataset[Any]):
    """An object that only iterates, as a data set; it answers for the object in all else."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of)

    def __getattr__(self, name: str) -> Any:
        if name == "_of":  # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._of, name)


def as_loader(like: Any) -> Any:
    """The `DataLoader` that reads as an object with its attributes says."""
    from taeda_data.loader import DataLoader

    workers = like.num_workers
    iterated = like._dataset_kind == DatasetKind.Iterable
    order: dict[str, Any]
    if iterated:
        size = getattr(like, "batch_size", None) if like._auto_collation else None
        order = {"batch_size": size, "drop_last": like.drop_last if size is not None else False}
    elif like._auto_collation:
        order = {"batch_sampler": like._index_sampler}
    else:
        order = {"batch_size": None, "sampler": like._index_sampler}
    dataset: Any = like.dataset
    if iterated and not isinstance(dataset, IterableDataset):
        dataset = _Iterated(dataset)
    collate: Callable[[Any], Any] = like.collate_fn
    return DataLoader(
        dataset,
        **order,
        collate_fn=collate,
        num_workers=workers,
        pin_memory=like.pin_memory,
        pin_memory_device=getattr(like, "pin_memory_device", "") or "",
        timeout=like.timeout,
        worker_init_fn=like.worker_init_fn,
        generator=like.generator,
        multiprocessing_context=_context(like) if workers else None,
        prefetch_factor=like.prefetch_factor if workers else None,
    )


def _context(like: Any) -> Any:
    """How worker processes start; the module of processes itself says nothing about it."""
    from types import ModuleType

    context = getattr(like, "multiprocessing_context", None)
    return None if isinstance(context, ModuleType) else context
