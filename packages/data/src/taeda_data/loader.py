"""DataLoader: batches of a data set, in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda_data.collate import default_collate, default_convert
from taeda_data.dataset import Dataset, IterableDataset, TensorDataset
from taeda_data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from taeda_registry.slots import tensor


class DataLoader:
    """Iterates over a data set in batches.

    Args:
        dataset: a `Dataset` (indexed) or an `IterableDataset`.
        batch_size: samples in a batch; None gives single, unbatched samples.
        shuffle: read in random order, another one each epoch.
        sampler: order of indices; excludes shuffle.
        batch_sampler: lists of indices; excludes batch_size, shuffle, sampler and drop_last.
        num_workers: must be 0 until worker processes are installed.
        collate_fn: joins a list of samples; default `default_collate`.
        drop_last: leave out a last batch that is not full.
        generator: source of the order; None is the default generator.
        Others are accepted as in PyTorch and have no effect in one process.

    Raises:
        ValueError: options that exclude each other. Errors in the data set keep their type; a note names the sample.

    Example:
        >>> for x, y in DataLoader(TensorDataset(taeda.zeros(4, 2), taeda.arange(4)), batch_size=2):
        ...     print(y)
        tensor([0, 1])
        tensor([2, 3])
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers != 0:
            raise ValueError(
                f"DataLoader: argument 'num_workers' is {num_workers}, expected 0: worker processes need the "
                "multiprocessing part; pip install taeda-multiprocessing"
            )
        iterable = isinstance(dataset, IterableDataset)
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader: an IterableDataset has its own order; shuffle, sampler, batch_sampler must not be given"
            )
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: arguments 'sampler' and 'shuffle' exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "DataLoader: argument 'batch_sampler' excludes batch_size, shuffle, sampler and drop_last"
            )
        if batch_sampler is None and batch_size is None and drop_last:
            raise ValueError("DataLoader: argument 'drop_last' needs a batch_size")
        self.dataset, self.num_workers, self.drop_last, self.generator = dataset, 0, drop_last, generator
        self.timeout, self.pin_memory, self.worker_init_fn = timeout, pin_memory, worker_init_fn
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        if sampler is None and not iterable:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]
        self.sampler = sampler
        if batch_sampler is not None:
            self.batch_size = None
            self.batch_sampler: Iterable[list[Any]] | None = batch_sampler
        else:
            self.batch_size = batch_size
            batched = batch_size is not None and not iterable
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last) if batched else None  # type: ignore[arg-type]
        self._batched = batch_sampler is not None or batch_size is not None
        if iterable and batch_size is not None:
            BatchSampler([], batch_size, drop_last)  # checks its arguments
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._epoch_start: Any = None  # generator state before this epoch's order was drawn
        self._position = 0
        self._resume: dict[str, Any] | None = None

    def __len__(self) -> int:
        """Number of batches of an epoch; TypeError for a data set without a length."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        n = len(self.dataset)  # type: ignore[arg-type]
        if not self._batched:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)  # type: ignore[operator]

    def __iter__(self) -> Iterator[Any]:
        resume, self._resume = self._resume, None
        source = self.generator or tensor.default_generator
        if resume is not None:
            source.set_state(resume["order"])
        self._epoch_start = source.get_state()
        self._position = 0
        groups = self._groups()
        skip = 0 if resume is None else resume["position"]
        for _ in range(skip):
            if next(groups, None) is None:
                break
            self._position += 1
        if resume is not None and resume.get("random") is not None:
            source.set_state(resume["random"])
        return self._batches(groups)

    def _groups(self) -> Iterator[Any]:
        """Lists of indices, single indices, or (for iterable data sets) lists of samples."""
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        if not isinstance(self.dataset, IterableDataset):
            return iter(self.sampler)  # type: ignore[arg-type]
        samples = iter(self.dataset)
        return self._sample_groups(samples) if self._batched else samples

    def _sample_groups(self, samples: Iterator[Any]) -> Iterator[list[Any]]:
        while group := list(itertools.islice(samples, self.batch_size)):
            if len(group) == self.batch_size or not self.drop_last:
                yield group

    def _batches(self, groups: Iterator[Any]) -> Iterator[Any]:
        read = self._reader()
        for group in groups:
            batch = read(group)
            self._position += 1
            yield batch

    def _reader(self) -> Callable[[Any], Any]:
        collate, dataset = self.collate_fn, self.dataset
        if isinstance(dataset, IterableDataset):
            return collate
        if not self._batched:
            return lambda index: collate(self._sample(index))
        if collate is default_collate and type(dataset) is TensorDataset:
            return lambda indices: list(dataset.__getbatch__(indices))
        if hasattr(dataset, "__getitems__"):
            return lambda indices: collate(dataset.__getitems__(indices))
        return lambda indices: collate([self._sample(i) for i in indices])

    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            error.add_note(f"while reading sample {index!r} of {type(self.dataset).__name__}")
            raise

    def state_dict(self) -> dict[str, Any]:
        """Where the current epoch stands: restored by `load_state_dict`, the next ``iter`` goes on with the next batch.

        Exact for orders drawn from ``generator`` (or the default generator) at the start of the epoch.
        """
        source = self.generator or tensor.default_generator
        order = source.get_state() if self._epoch_start is None else self._epoch_start
        return {"position": self._position, "order": order, "random": source.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over a state of `state_dict`; it takes effect at the next ``iter``."""
        missing = {"position", "order"} - set(state)
        if missing:
            raise ValueError(f"DataLoader.load_state_dict: the state lacks {sorted(missing)}")
        self._resume = dict(state)
