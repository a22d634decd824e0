"""What a worker does, in a process or a thread of its own: it reads batches that it is told to."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from taeda_data import collate, packing, randomness, reading
from taeda_data.dataset import Dataset, IterableDataset
from taeda_registry.slots import multiprocessing as parallel
from taeda_registry.slots import tensor

_SMALL = 4096  # bytes of a batch up to which a copy is quicker than shared memory

# Messages to a worker, and from it: a word first, then the number of the epoch.
EPOCH, READ, BATCH, END, ERROR = "epoch", "read", "batch", "end", "error"


class WorkerError(Exception):
    """The traceback of an error in a worker, as the cause of that error."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n\n{self.text}"


class Packed(NamedTuple):
    """A long list of indices as a tensor."""

    indices: Any


class Plan:
    """What all workers of a loader share.

    Args:
        dataset, collate_fn, batched: as for `Reader`.
        batch_size, drop_last: how iterable data sets are cut.
        workers: number of workers.
        init: called in each worker with its number.

    Attributes:
        pytorchs: whether worker processes draw the numbers of PyTorch's.
        packed: the data set's long lists, for forked workers (see `packing.pack`).
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        collate_fn: Callable[[Any], Any],
        batched: bool,
        batch_size: int | None,
        drop_last: bool,
        workers: int,
        init: Callable[[int], None] | None,
    ) -> None:
        self.dataset, self.collate_fn, self.batched = dataset, collate_fn, batched
        self.batch_size, self.drop_last = batch_size, drop_last
        self.workers, self.init = workers, init
        self.pytorchs = randomness.has_pytorchs_streams()
        self.packed: list[Any] = []


class Worker:
    """Answers messages, one after another.

    Args:
        plan: what to read, and how.
        number: which worker this is.
        alone: whether the process's global generators are its own.
    """

    def __init__(self, plan: Plan, number: int, alone: bool) -> None:
        self._plan, self._number, self._alone = plan, number, alone
        self._sources: list[randomness.Source] = []
        self._numbers: list[int] = []
        self._read: Any = None
        self._batches: Iterator[Any] | None = None
        self._started = False
        self._own: dict[int, int] = {}  # of the sources that the initialiser seeded, the next epoch's numbers

    def answer(self, message: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The answer to a message: a batch, the end of what there is to read, an error; nothing to a new epoch."""
        epoch, number = message[1], None
        try:
            if message[0] == EPOCH:
                self._begin(*message[2:])
                return None
            number = message[2]
            return self._batch(epoch, number, message[3])
        except BaseException as error:
            if isinstance(error, (SystemExit, KeyboardInterrupt)) and self._alone:
                raise
            return ERROR, epoch, number, packed(error, self._number)

    def _begin(self, seed: int, numbers: list[int]) -> None:
        plan = self._plan
        reading.set_worker_info(self._number, plan.workers, seed + self._number, plan.dataset)
        if self._alone and plan.pytorchs:
            if not self._started:
                randomness.seed_worker(seed, self._number)
        elif self._alone:
            self._sources = randomness.sources(plan.dataset, plan.collate_fn)
            self._numbers = [self._own.get(place, number) for place, number in enumerate(numbers)]
            self._own = {place: number + 1 for place, number in self._own.items()}  # another one each epoch
            randomness.seed_all(self._sources, self._numbers, f"worker {self._number}")
        if not self._started:
            self._started = True
            if plan.init is not None:
                self._initialise(plan.init)
        if isinstance(plan.dataset, IterableDataset):
            self._batches = self._cut(reading.once_begun(plan.dataset))
        else:
            self._read = reading.Reader(plan.dataset, plan.collate_fn, plan.batched, seed)

    def _initialise(self, init: Callable[[int], None]) -> None:
        touched = randomness.Touched(self._sources)
        init(self._number)
        for place, number in touched.numbers().items():
            self._numbers[place], self._own[place] = number, number + 1

    def _batch(self, epoch: int, number: int, group: Any) -> tuple[Any, ...]:
        if self._batches is not None:
            for batch in self._batches:
                return BATCH, epoch, number, batch
            return END, epoch, number
        if isinstance(group, Packed):
            group = group.indices.tolist()
        if (quietly := self._read.quietly(group)) is not None:
            return BATCH, epoch, number, quietly(group)
        if self._alone:
            randomness.seed_all(self._sources, self._numbers, number)
        return BATCH, epoch, number, self._read.drawing(group)

    def _cut(self, samples: Iterator[Any]) -> Iterator[Any]:
        plan = self._plan
        if not plan.batched:
            yield from map(plan.collate_fn, samples)
            return
        full = True
        while full and (group := list(itertools.islice(samples, plan.batch_size))):
            full = len(group) == plan.batch_size
            if full or not plan.drop_last:
                yield plan.collate_fn(group)


def packed(error: BaseException, worker: int) -> tuple[Any, ...]:
    """An error as what can be sent: by pickle where that gives it back, else by its class, arguments and attributes."""
    text = "".join(traceback.format_exception(error))
    text = f"Traceback of worker {worker} (process {os.getpid()}):\n{text}"
    try:
        whole = pickle.dumps(error)
        if type(pickle.loads(whole)) is type(error):
            return text, whole, None
    except Exception:  # classes raise whatever they like when they are made anew
        pass
    try:
        return text, None, pickle.dumps((type(error), error.args, vars(error)))
    except Exception:
        return text, None, None


def unpacked(parts: tuple[Any, ...]) -> BaseException:
    """The error again, with the worker's traceback as its cause."""
    text, whole, pieces = parts
    error: BaseException
    try:
        if whole is not None:
            error = pickle.loads(whole)
        elif pieces is not None:
            kind, arguments, attributes = pickle.loads(pieces)
            error = kind.__new__(kind)
            error.args = arguments
            error.__dict__.update(attributes)
        else:
            error = RuntimeError(
                "DataLoader: an error in a worker that cannot be sent; its traceback is the cause"
            )
    except Exception:
        error = RuntimeError(
            "DataLoader: an error in a worker that cannot be read; its traceback is the cause"
        )
    error.__cause__ = WorkerError(text)
    return error


def run_process(plan: Plan, number: int, connection: Any, others: list[Any]) -> None:
    """Main function of a worker process.

    Args:
        plan, number: as for `Worker`.
        connection: to the loader.
        others: the loader's ends of connections, which a forked worker inherits and must not keep open.
    """
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader's process has it too, and ends its workers
    for other in others:
        other.close()
    # Data sets may have loaders of their own.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    packing.settle(plan.packed)
    getattr(tensor, "set_num_threads", int)(1)
    # Batches are joined in the shared memory by which they are sent.
    reductions = getattr(parallel, "reductions", None)
    collate.target = getattr(reductions, "empty_shared", None)
    getattr(reductions, "send_small_as_bytes", int)(_SMALL)
    worker = Worker(plan, number, alone=True)
    try:
        while (message := connection.recv()) is not None:
            answer = worker.answer(message)
            if answer is not None:
                _send(connection, answer, number)
            del answer  # what it holds is the loader's now
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the loader is gone


def _send(connection: Any, answer: tuple[Any, ...], number: int) -> None:
    try:
        connection.send(answer)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # a batch that cannot be pickled
        error.add_note(f"while sending batch {answer[2]}")
        connection.send((ERROR, answer[1], answer[2], packed(error, number)))


def run_thread(plan: Plan, number: int, tasks: Any, results: Any) -> None:
    """Main function of a worker thread."""
    worker = Worker(plan, number, alone=False)
    while (message := tasks.get()) is not None:
        answer = worker.answer(message)
        if answer is not None:
            results.put((number, answer))
        del answer, message


def thread(plan: Plan, number: int, tasks: Any, results: Any) -> threading.Thread:
    """A worker thread, not yet started."""
    return threading.Thread(
        target=run_thread, args=(plan, number, tasks, results), name=f"loader {number}", daemon=True
    )
