"""How a loader gets batches out of a data set, and which sample is being read."""

from __future__ import annotations

import hashlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from taeda_data.collate import default_collate, default_convert, joins_as_always
from taeda_data.dataset import Dataset, Subset, TensorDataset
from taeda_data.inert import draws_nothing
from taeda_data.packing import PackedList
from taeda_registry.slots import tensor

#: `place`: the epoch's seed and the index being read; `info`: what a worker is told.
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
    place = getattr(_current, "place", None)
    if place is None:
        raise RuntimeError(
            "worker_rng: expected to be called while a DataLoader reads a sample, found no such"
        )
    digest = hashlib.blake2b(repr(tuple(place)).encode(), digest_size=8).digest()
    return tensor.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


def once_begun(items: Iterable[Any]) -> Iterator[Any]:
    """The items of what is begun here alone: an iterator's own `__iter__`, which `for` calls too, may begin it anew."""
    return map(next, itertools.repeat(iter(items)))


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker of a loader is told about itself.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: of this worker in this epoch.
        dataset: its own copy of the data set in a process, the data set itself in a thread.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """What this worker of a loader is told about itself; None outside of workers.

    Example:
        >>> class Lines(IterableDataset):
        ...     def __iter__(self):
        ...         info = get_worker_info()
        ...         yield from lines if info is None else lines[info.id :: info.num_workers]
    """
    info = getattr(_current, "info", None)
    if info is None and (told := sys.modules.get("taeda_data._utils.worker")) is not None:
        info = getattr(told, "_worker_info", None)  # where a program's own loader tells its workers
    return info


def set_worker_info(number: int, workers: int, seed: int, dataset: Any) -> None:
    """Say what `get_worker_info` returns in this thread."""
    _current.info = WorkerInfo(number, workers, seed, dataset)


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
        joined = batched and collate is default_collate
        self._gather = gather_of(dataset) if joined else None
        self.at_once = self._gather is not None  # plain groups need no sample read
        plainly = joins_as_always() if collate is default_collate else collate is default_convert
        self._is_inert = draws_nothing(dataset) if plainly and self._gather is None else None
        # The plain functions: a bound method here would hold its own reader, and with it the data set, in a ring.
        many = hasattr(dataset, "__getitems__")
        self._read = (Reader._many if many else Reader._one_by_one) if batched else Reader._single

    def quietly(self, group: Any) -> Callable[[list[int]], Any] | None:
        """How to read a group so that certainly no random number is drawn; None where reading it may draw one."""
        if self._gather is None:
            if self._is_inert is None or not self._is_inert() or not _plain(group):
                return None
            return self._inertly if self._read is Reader._one_by_one else self.drawing
        return self._gathered if _plain(group) else None

    def __call__(self, group: Any) -> Any:
        """The batch (or sample) of a group; errors keep their type and get a note."""
        if (quietly := self.quietly(group)) is not None:
            return quietly(group)
        return self.drawing(group)

    def drawing(self, group: Any) -> Any:
        """The same, where samples may draw random numbers: `worker_rng` knows which of them is being read."""
        around = getattr(_current, "place", None)  # of a loader whose data set has one of its own
        place = _current.place = [self._seed, None]
        try:
            return self._read(self, group, place)
        finally:
            _current.place = around

    def _gathered(self, group: list[int]) -> Any:
        assert self._gather is not None
        return self._noted(self._gather, group, group)

    def _inertly(self, group: list[int]) -> Any:
        samples: list[Any] = []
        try:
            samples.extend(map(self._dataset.__getitem__, group))
        except Exception as error:
            self._note(error, "reading sample", group[len(samples)])  # those before it were taken
            raise
        return self._noted(self._collate, samples, group)

    def _single(self, index: Any, place: list[Any]) -> Any:
        place[1] = index
        sample = self._noted(self._dataset.__getitem__, index, index)
        return self._noted(self._collate, sample, index)

    def _one_by_one(self, indices: Any, place: list[Any]) -> Any:
        samples = []
        read = self._dataset.__getitem__
        index = None
        try:
            for index in indices:
                place[1] = index
                samples.append(read(index))
        except Exception as error:
            self._note(error, "reading sample", index)
            raise
        return self._noted(self._collate, samples, indices)

    def _many(self, indices: Any, place: list[Any]) -> Any:
        place[1] = tuple(indices)
        samples = self._noted(self._dataset.__getitems__, indices, indices)  # type: ignore[attr-defined]
        if self._collate is default_collate and len(samples) != len(
            indices
        ):  # others may join what they know
            raise ValueError(
                f"DataLoader: {type(self._dataset).__name__}.__getitems__ returned {len(samples)} samples, "
                f"expected {len(indices)}"
            )
        return self._noted(self._collate, samples, indices)

    def _noted(self, call: Callable[[Any], Any], argument: Any, index: Any) -> Any:
        try:
            return call(argument)
        except Exception as error:
            self._note(error, "joining the samples" if call is self._collate else "reading sample", index)
            raise

    def _note(self, error: Exception, what: str, index: Any) -> None:
        error.add_note(f"while {what} {index!r} of {type(self._dataset).__name__}")


class Failed:
    """Stands for a batch that could not be read: its place raises the error, and the pass goes on behind it."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        if isinstance(error, StopIteration):  # it would end the caller's loop, as if all had been read
            self.error: Exception = RuntimeError("DataLoader: the data set raised StopIteration")
            self.error.__cause__ = error
        else:
            self.error = error


_INT = {int}


def _plain(group: Any) -> bool:
    """Whether a group is a list of ints, or an int, that count from the front."""
    if isinstance(group, list):
        return set(map(type, group)) <= _INT and min(group, default=0) >= 0
    return type(group) is int and group >= 0


def gather_of(dataset: Dataset[Any]) -> Callable[[list[int]], list[Any]] | None:
    """How to take a whole batch out of a data set at once, where reading sample by sample means nothing else."""
    if type(dataset) is TensorDataset:
        return dataset.gather
    if type(dataset) is Subset and (inner := gather_of(dataset.dataset)) is not None:
        indices = dataset.indices
        return lambda places: inner([indices[i] for i in places])
    if type(dataset) in (list, tuple, range, PackedList) and joins_as_always():
        return lambda places: default_collate([dataset[i] for i in places])
    return None
