"""DataLoader: batches of a data set, read in this thread or by workers."""

from __future__ import annotations

import functools
import inspect
import itertools
import multiprocessing
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from taeda_data.collate import default_collate, default_convert
from taeda_data.crew import Crew, Epoch, ProcessCrew, ThreadCrew
from taeda_data.dataset import Dataset, IterableDataset
from taeda_data.iterators import (
    BaseDataLoaderIter,
    DatasetKind,
    MultiProcessingDataLoaderIter,
    SingleProcessDataLoaderIter,
    as_loader,
)
from taeda_data.pinning import pinner
from taeda_data.progress import shown
from taeda_data.randomness import (
    Source,
    draw_seed,
    following,
    has_pytorchs_streams,
    seed_all,
    sources,
)
from taeda_data.reading import Failed, Reader, once_begun
from taeda_data.sampler import BatchSampler, NoIndices, RandomSampler, Sampler, SequentialSampler
from taeda_data.workers import EPOCH, Plan
from taeda_registry.slots import multiprocessing as parallel
from taeda_registry.spans import waited_for

T_co = TypeVar("T_co", covariant=True)


def _nothing() -> None:
    """No pass."""


#: Attributes of a loader that its constructor alone sets.
_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset: a `Dataset` (indexed) or an `IterableDataset`.
        batch_size: samples in a batch; None gives single, unbatched samples.
        shuffle: read in random order, another one each epoch.
        sampler: order of indices; excludes shuffle.
        batch_sampler: lists of indices; excludes batch_size, shuffle, sampler and drop_last.
        num_workers: how many workers read ahead; 0 reads in this thread.
        collate_fn: joins a list of samples; default `default_collate`.
        pin_memory: copy each batch to host memory from which the accelerator copies without blocking; a
            warning where there is none.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch of a worker; 0 waits as long as it takes.
        worker_init_fn: called in each worker with its number before it reads.
        multiprocessing_context: how worker processes start: "fork", "spawn", "forkserver", or a context.
        generator: source of the order; None is the default generator.
        prefetch_factor: batches that each worker is ahead; default 2.
        persistent_workers: keep the workers from one epoch to the next.
        pin_memory_device: the device to pin for, in place of the accelerator; an error where it cannot.
        in_order: hand batches out in the order of the sampler; False hands them out as they come.
        progress: show a bar with the rate of samples (needs tqdm); lines of logs are not filled with it.
        worker_type: "process", or "thread" for data sets whose reading leaves Python's lock.

    What data sets draw from random generators (Python's, NumPy's, the tensors' default one, generator objects that
    they hold) depends on these generators' states when the epoch begins and on the batch, not on the number of worker
    processes. In threads that holds for `worker_rng` alone, since they share the global generators. In worker processes
    of a loader with a ``generator`` it depends on that in place of the global ones, and what ``worker_init_fn`` seeds
    depends on that. Where the default generator is an mt19937, data sets that are read without workers draw from the
    program's own streams, as in PyTorch.

    Errors in the data set keep their type; a note names the sample. What is to be said of pin_memory
    comes with ``iter``.

    Raises:
        TypeError: shuffle is no bool, or collate_fn cannot be called.
        ValueError: options that exclude each other.
        RuntimeError: a worker process died, or gave no batch in time; on iterating.

    Example:
        >>> for x, y in DataLoader(TensorDataset(taeda.zeros(4, 2), taeda.arange(4)), batch_size=2):
        ...     print(y)
        tensor([0, 1])
        tensor([2, 3])
    """

    # What stands here is there for subclasses too which copy PyTorch's constructor in place of calling this one.
    worker_type = "process"
    progress = False
    _crew: Crew | None = None  # persistent workers
    _seed = 0  # of the epoch begun last
    _pass: Callable[[], Any] = staticmethod(_nothing)  # the pass that has them, while it lives
    _resume: dict[str, Any] | None = None
    _claimed: int | None = None  # the length that an iterable data set says it has, once asked
    __initialized = False
    _epoch = 0  # epochs begun
    _begun: dict[str, Any] | None = None  # what the current epoch's order follows from; None between epochs
    _unread = 0  # batches that workers read again after load_state_dict
    _position = 0  # batches of the current epoch that were handed out

    def __init__(
        self,
        dataset: Dataset[T_co],
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
        worker_type: str = "process",
        progress: bool = False,
    ) -> None:
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context, worker_type
        )
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle")
        if shuffle is not None:
            if not hasattr(shuffle, "__bool__"):  # numbers and NumPy's bools say it as well, text does not
                raise TypeError(f"DataLoader: argument 'shuffle' must be a bool or None, found {shuffle!r}")
            shuffle = bool(shuffle)
        if collate_fn is not None and not callable(collate_fn):
            raise TypeError(
                f"DataLoader: argument 'collate_fn' must be callable or None, found {type(collate_fn).__name__}"
            )
        if shuffle is not None and hasattr(type(dataset), "with_shuffle"):  # a pipe, which shuffles by itself
            dataset, shuffle = dataset.with_shuffle(shuffle), None  # type: ignore[attr-defined]
        iterable = isinstance(dataset, IterableDataset)
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            given = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
            name, value = next(
                (name, value) for name, value in given.items() if not (value is None or value is False)
            )
            raise ValueError(
                "DataLoader with IterableDataset, which has its own order: expected unspecified "
                f"{name} option, but got {name}={value}"
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
        if batch_sampler is None and batch_size is None and drop_last:
            raise ValueError(
                "DataLoader: batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        self.dataset, self.num_workers = dataset, num_workers
        self.drop_last, self.generator = drop_last, generator
        self.multiprocessing_context, self.worker_type = multiprocessing_context, worker_type
        self.in_order, self.progress = in_order, progress
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.persistent_workers = persistent_workers
        if iterable:
            sampler = NoIndices()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore[arg-type]
        self.sampler = sampler
        if batch_sampler is not None:
            self.batch_size = None
            self.batch_sampler: Iterable[list[Any]] | None = batch_sampler
        else:
            self.batch_size = batch_size
            self.batch_sampler = None if batch_size is None else BatchSampler(sampler, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self.__initialized = True
        if worker_type == "process":
            self._weigh_workers()

    def check_worker_number_rationality(self) -> None:
        """Warns when there are more workers than cores that this process may use, as making a loader does."""
        self._weigh_workers()

    def _weigh_workers(self) -> None:
        if not self.num_workers:
            return
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores is None or self.num_workers <= cores:
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
            f"worker in current system is {cores}, which is smaller than what this DataLoader is going to create.",
            stacklevel=3,
        )

    def __len__(self) -> int:
        """Number of batches of an epoch; TypeError for a data set without a length."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        n = self._claimed = len(self.dataset)  # type: ignore[arg-type]
        if not self._batched:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)  # type: ignore[operator]

    def __iter__(self) -> BaseDataLoaderIter:
        begun = self._get_iterator()
        if self.persistent_workers and self.num_workers:
            self._pass = weakref.ref(begun)
        return begun

    @property
    def _iterator(self) -> BaseDataLoaderIter | None:
        """The latest pass, when its workers stay for the next one; None again ends the workers."""
        return self._pass()

    @_iterator.setter
    def _iterator(self, value: Any) -> None:
        if value is not None:  # a subclass keeps passes of its own, also such that are no loader's
            self._pass = lambda: value
            return
        self._pass = _nothing
        self._dismiss()

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes start, as a context also where its name was given; None for the usual way."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        _check_context(self.num_workers, context)
        self.__multiprocessing_context = (
            parallel.get_context(context) if isinstance(context, str) else context
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__initialized:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's loaders keep as attributes what is found out here.
        theirs = {
            "_dataset_kind": self._dataset_kind,
            "_IterableDataset_len_called": None,
            "_iterator": None,
        }
        return {**self.__dict__, **theirs}

    def _get_iterator(self) -> BaseDataLoaderIter:
        kind = MultiProcessingDataLoaderIter if self.num_workers else SingleProcessDataLoaderIter
        own = type(self)
        if (
            own._auto_collation is not DataLoader._auto_collation
            or own._index_sampler is not DataLoader._index_sampler
        ):
            return kind(as_loader(self))  # a subclass says what is read
        return kind(self)

    def _start(self) -> tuple[Iterator[Any], Iterator[Any]]:
        """Begin a pass: its batches, and the groups of indices from which they will be read."""
        pin = pinner(self.pin_memory, self.pin_memory_device)
        resume, self._resume = self._resume, None
        begun = resume["begun"] if resume is not None else None
        if begun is None:
            self._epoch += 1
            seed = self._draw_seed()
        else:
            seed = begun["seed"]
            _load(self._order(), begun["order"])
            if self.generator is not None:
                self.generator.set_state(resume["generator"])  # type: ignore[index]
        groups = self._groups()
        # Of an iterable data set it is where it stands when the loader's state is asked for.
        order = None if isinstance(self.dataset, IterableDataset) else _save(self._order())
        self._begun = {"seed": seed, "order": order}
        self._position = 0
        if begun is not None:
            self._skip(groups, resume["position"])  # type: ignore[index]
        # Which data set it is, is settled now: a subclass may show programs another one between passes.
        dataset = self.dataset
        reading = self._read_here if self.num_workers == 0 else self._read_by_workers
        batches = self._batches(reading(groups, seed, dataset), pin, self._claimed)
        return shown(batches, self) if self.progress else batches, groups

    def _draw_seed(self) -> int:
        """The epoch's seed. PyTorch draws none for workers that stay: theirs then follows from the one before."""
        stay = self._crew is not None and has_pytorchs_streams()
        self._seed = self._seed + self.num_workers if stay else draw_seed(self.generator)
        return self._seed

    @functools.cached_property
    def _dataset_kind(self) -> int:  # subclasses that copy PyTorch's `__init__` set it
        return DatasetKind.Iterable if isinstance(self.dataset, IterableDataset) else DatasetKind.Map

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are joined to batches."""
        return self._batched

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What gives the indices, one batch or sample at a time."""
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _order(self) -> Any:
        """What holds the order of an epoch."""
        if isinstance(self.dataset, IterableDataset):
            return self.dataset
        if hasattr(self.batch_sampler, "state_dict"):
            return self.batch_sampler
        return getattr(self.batch_sampler, "sampler", self.sampler)

    def _skip(self, groups: Iterator[Any], count: int) -> None:
        self._position = count
        if isinstance(self.dataset, IterableDataset) and self.num_workers:
            self._unread = count  # each worker begins anew
            return
        # An iterable data set with a state of its own already stands at its place.
        stands = isinstance(self.dataset, IterableDataset) and hasattr(self.dataset, "load_state_dict")
        if not (stands and _state_of(self.dataset)):
            next(itertools.islice(groups, count, count), None)

    def _groups(self) -> Iterator[Any]:
        """Lists of indices, single indices, or (for iterable data sets) samples or lists of them."""
        if not isinstance(self.dataset, IterableDataset):
            return once_begun(self._index_sampler)
        if self.num_workers:
            return itertools.repeat(None)  # workers cut their own samples
        samples = once_begun(self.dataset)
        return self._sample_groups(samples) if self._batched else samples

    def _sample_groups(self, samples: Iterator[Any]) -> Iterator[list[Any]]:
        # A stream that has ended is not asked again: not every iterator stays ended.
        full = True
        while full and (group := list(itertools.islice(samples, self.batch_size))):
            full = len(group) == self.batch_size
            if full or not self.drop_last:
                yield group

    def _batches(
        self, read: Iterator[Any], pin: Callable[[Any], Any] | None, claimed: int | None
    ) -> Iterator[Any]:
        kind = "_SingleProcessDataLoaderIter" if self.num_workers == 0 else "_MultiProcessingDataLoaderIter"
        read = waited_for(read if pin is None else map(pin, read), f"enumerate(DataLoader)#{kind}.__next__")
        # No name holds the batch here: its memory is free as soon as the caller lets go of it.
        for batch in read:
            self._position += 1
            if claimed is not None and self._position > claimed:
                self._warn_of_length(claimed)
            held = [batch]
            del batch
            yield held.pop()
        self._begun, self._position = None, 0

    def _warn_of_length(self, claimed: int) -> None:
        several = (
            f" Each of the {self.num_workers} workers reads a copy of the data set, which should give it its own share"
            " (see get_worker_info)."
        )
        warnings.warn(
            f"DataLoader: the length of {type(self.dataset).__name__} was reported to be {claimed}, but "
            f"{self._position} samples have been fetched.{several if self.num_workers else ''}",
            stacklevel=3,
        )

    def _read_here(self, groups: Iterator[Any], seed: int, dataset: Any) -> Iterator[Any]:
        if isinstance(dataset, IterableDataset):
            return map(self.collate_fn, groups)
        read = Reader(dataset, self.collate_fn, self._batched, seed)
        return self._seeded(read, groups, dataset)

    def _seeded(self, read: Reader, groups: Iterator[Any], dataset: Any) -> Iterator[Any]:
        """Batches of this thread, from the streams that they would have in a worker.

        Between two batches every source stands where the program left it, as with workers. Where the streams are
        PyTorch's, batches draw from the program's own instead, as PyTorch's do.
        """
        found: list[Source] = []
        numbers: list[int] = []
        pytorchs = has_pytorchs_streams()
        for number, group in enumerate(groups, self._position):
            outside = None
            try:
                quietly = read.quietly(group)
                if not (pytorchs or found or (quietly and read.at_once)):
                    found, numbers = self._sources(dataset)
                if quietly is None and not pytorchs:
                    outside = [source.save() for source in found]
                    seed_all(found, numbers, number)
                batch = [(quietly or read.drawing)(group)]
            except Exception as error:
                batch = [Failed(error)]
            finally:
                if outside is not None:
                    for source, state in zip(found, outside, strict=True):
                        source.restore(state)
            yield batch.pop()

    def _sources(self, dataset: Any) -> tuple[list[Source], list[int]]:
        """What the data set may draw from, and each source's number for the epoch."""
        owners = (self, self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None))
        own = tuple(getattr(owner, "generator", None) for owner in owners)
        found = sources(dataset, self.collate_fn, excluded=own)
        return found, [source.draw() for source in found]

    def _read_by_workers(self, groups: Iterator[Any], seed: int, dataset: Any) -> Iterator[Any]:
        crew = self._crew if self._crew is not None else self._new_crew(dataset)
        self._crew = crew if self.persistent_workers else None
        done = False
        try:
            seeded = self.worker_type == "process" and not has_pytorchs_streams()
            numbers = self._sources(dataset)[1] if seeded else []
            if self.generator is not None and numbers:
                numbers = following(seed, numbers)
            for worker in range(self.num_workers):
                crew.send(worker, (EPOCH, self._epoch, seed, numbers))
            epoch = Epoch(
                crew,
                self.num_workers,
                self._epoch,
                groups,
                self.prefetch_factor or 2,
                self.in_order,
                self.timeout,
                self._position,
            )
            for _ in range(self._unread):
                next(epoch, None)
            self._unread = 0
            for batch in epoch:
                if type(batch) is Failed and isinstance(dataset, IterableDataset):
                    raise batch.error
                held = [batch]
                del batch
                yield held.pop()
            done = True
        finally:
            # Persistent workers stay unless something went wrong; what they still answer belongs to an old epoch.
            if not self.persistent_workers or not (done or sys.exc_info()[0] is GeneratorExit):
                self._crew = None
                crew.close()

    def _dismiss(self) -> None:
        """End workers that stay from one pass to the next."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def _new_crew(self, dataset: Any) -> Crew:
        plan = Plan(
            dataset,
            self.collate_fn,
            self._batched,
            self.batch_size,
            self.drop_last,
            self.num_workers,
            self.worker_init_fn,
        )
        return (
            ThreadCrew(plan)
            if self.worker_type == "thread"
            else ProcessCrew(plan, self.multiprocessing_context)
        )

    def state_dict(self) -> dict[str, Any]:
        """Where reading stands, as plain data: after `load_state_dict`, the next ``iter`` goes on with the next batch.

        Exact for the samplers of this package, for samplers with ``state_dict`` and ``load_state_dict``, and for
        those that always give the same order; nothing is read twice except by iterable data sets that do not have
        these two methods. The default generator's state is not part of it.
        """
        begun = self._begun
        if begun is not None and isinstance(self.dataset, IterableDataset):
            begun = {**begun, "order": _save(self.dataset)}
        source = None if self.generator is None else self.generator.get_state()
        return {"epoch": self._epoch, "position": self._position, "begun": begun, "generator": source}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over a state of `state_dict`; it takes effect at the next ``iter``.

        Raises:
            ValueError: a state of another form; nothing has changed.
        """
        missing = sorted({"epoch", "position", "begun", "generator"} - set(state))
        if missing:
            raise ValueError(f"DataLoader.load_state_dict: the state lacks {missing}, found {sorted(state)}")
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])
        self._resume, self._epoch = dict(state), state["epoch"]
        self._begun, self._position = state["begun"], state["position"]


def _check_workers(
    num_workers: Any,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    context: Any,
    worker_type: str,
) -> None:
    if not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(
            f"DataLoader: num_workers option should be a non-negative int, found {num_workers!r}"
        )
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout option should be non-negative, found {timeout}")
    if worker_type not in ("process", "thread"):
        raise ValueError(
            f"DataLoader: argument 'worker_type' must be 'process' or 'thread', found {worker_type!r}"
        )
    if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
        raise ValueError("DataLoader: prefetch_factor and persistent_workers need num_workers > 0, found 0")
    _check_context(num_workers, context)
    if prefetch_factor is not None and (not isinstance(prefetch_factor, int) or prefetch_factor < 1):
        raise ValueError(
            f"DataLoader: argument 'prefetch_factor' must be a positive int, found {prefetch_factor!r}"
        )


def _check_context(num_workers: int, context: Any) -> None:
    if num_workers == 0 and context is not None:
        raise ValueError("DataLoader: multiprocessing_context needs num_workers > 0, found 0")
    if isinstance(context, str) and context not in multiprocessing.get_all_start_methods():
        raise ValueError(
            "DataLoader: multiprocessing_context option should specify a valid start method in "
            f"{multiprocessing.get_all_start_methods()}, but got multiprocessing_context={context!r}"
        )
    if context is not None and not isinstance(context, str) and not hasattr(context, "Process"):
        raise TypeError(
            "DataLoader: argument 'multiprocessing_context' must be the name of a start method or a context, "
            f"found {type(context).__name__}"
        )


def _state_of(order: Any) -> Callable[[], dict[str, Any]] | None:
    """What gives an order's state; None where it has none, or one that only its owner can ask for."""
    own = getattr(order, "_order_state", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    found = getattr(order, "state_dict", None)
    try:
        if found is not None:
            inspect.signature(found).bind()
    except TypeError:  # it asks for arguments
        return None
    except ValueError:  # a built-in function that does not say
        pass
    return found


def _save(order: Any) -> dict[str, Any] | None:
    state = _state_of(order)
    return None if state is None else state()


def _load(order: Any, state: dict[str, Any] | None) -> None:
    load = getattr(order, "_load_order_state", None) or getattr(order, "load_state_dict", None)
    if state is not None and load is not None:
        load(state)
