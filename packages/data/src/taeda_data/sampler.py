"""Orders in which samples are read."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from taeda_data.randomness import device_of, draw_seed, on, permutation
from taeda_registry import processes
from taeda_registry.slots import tensor

T_co = TypeVar("T_co", covariant=True)
_T_co = T_co  # the name in newer programs


class Sampler(Generic[T_co]):
    """Base class of orders: iterating gives indices, ``len`` how many."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... of a sized data source.

    Example:
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class NoIndices(Sampler[None]):
    """None without end: what stands in the place of an order where the data set has its own."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class _Seeded(Sampler[int]):
    """Orders drawn from one seed an epoch, so that an epoch can be gone through again.

    The seed is drawn when iterating begins: from ``generator``, or from the default generator. Where that is an
    mt19937, whose numbers are PyTorch's, an order that PyTorch draws from the generator itself is drawn from it too,
    and the generator's state stands in the place of the seed.
    """

    generator: Any = None
    _seed: Any = None  # of the epoch begun last
    _again: Any = None  # what the next epoch takes instead of drawing one

    def __iter__(self) -> Iterator[int]:
        again, self._again = self._again, None
        if again is None:
            own = self._source_of_its_own()
            if own is not None and getattr(own, "engine", None) == "mt19937":
                return self._drawn_from(own)
            again = draw_seed(self.generator)
        self._seed = again
        source = tensor.Generator()
        return self._order(source.manual_seed(again) if isinstance(again, int) else source.set_state(again))

    def _source_of_its_own(self) -> Any:
        """The generator from which PyTorch draws this order, None where it draws a seed."""
        if self.generator is not None:
            return self.generator
        return getattr(
            getattr(tensor, "random", None), "default_generator", None
        )  # which not all providers have

    def _drawn_from(self, source: Any) -> Iterator[int]:
        self._seed = source.get_state()
        yield from self._order(source)

    def _order(self, source: Any) -> Iterator[int]:
        raise NotImplementedError

    # Not under the public names: who finds these takes a sampler for one that keeps its place in the epoch.
    def _order_state(self) -> dict[str, Any]:
        """Seed (or state) of the current epoch, and where ``generator`` stands (None for the default generator)."""
        state = None if self.generator is None else self.generator.get_state()
        return {"seed": self._seed, "generator": state}

    def _load_order_state(self, state: dict[str, Any]) -> None:
        """Makes the next iteration repeat the saved epoch's order."""
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])
        self._again = state["seed"]


_DRAWN = 1024  # how many indices are drawn at a time


class RandomSampler(_Seeded):
    """A random permutation, or draws with replacement.

    Args:
        data_source: anything with a length.
        replacement: draw independently instead of permuting.
        num_samples: how many indices an epoch has; default: all.
        generator: source of randomness; None draws one seed an epoch from the default generator.

    Raises:
        ValueError: num_samples that is no positive int, or a data source without items. TypeError: one without length.

    Example:
        >>> sorted(RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: argument 'replacement' must be a bool, found {replacement!r}")
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            what = "'data_source' has no items: num_samples" if num_samples is None else "'num_samples'"
            raise ValueError(
                f"RandomSampler: argument {what} must be a positive int, found {self.num_samples!r}"
            )

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _source_of_its_own(self) -> Any:
        return self.generator

    def _order(self, source: Any) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            for start in range(0, wanted if n else 0, _DRAWN):  # an epoch may have more draws than memory
                count = min(_DRAWN, wanted - start)
                drawn = tensor.randint(
                    0, n, (count,), generator=source, dtype=tensor.int64, **on(device_of(source))
                )
                yield from drawn.tolist()
            return
        if not n:
            return
        # The last permutation is drawn where nothing is left to take from it, too, as PyTorch does.
        for start in range(0, wanted + 1, n):
            yield from permutation(n, source)[: wanted - start]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Seeded):
    """The given indices in random order.

    Example:
        >>> sorted(SubsetRandomSampler([4, 2]))
        [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def _order(self, source: Any) -> Iterator[int]:
        return (self.indices[i] for i in permutation(len(self.indices), source))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Seeded):
    """Indices drawn with probability proportional to ``weights``.

    Example:
        >>> list(WeightedRandomSampler([0.0, 1.0], num_samples=3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"WeightedRandomSampler: argument 'num_samples' must be a positive int, found {num_samples!r}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"WeightedRandomSampler: argument 'replacement' must be a bool, found {replacement!r}"
            )
        place = on(weights.device if isinstance(weights, tensor.Tensor) else "cpu")
        self.weights = tensor.as_tensor(weights, dtype=tensor.float64, **place)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler: argument 'weights' must be 1-d, found shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def _order(self, source: Any) -> Iterator[int]:
        weights = self.weights.to(**on(device_of(source)))
        drawn = tensor.multinomial(weights, self.num_samples, self.replacement, generator=source)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter unless ``drop_last``.

    Example:
        >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"BatchSampler: argument 'batch_size' must be a positive int, found {batch_size!r}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: argument 'drop_last' must be a bool, found {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        # The inner order begins now, not with the first batch: what it draws belongs to the start of the epoch.
        return self._batches(iter(self.sampler))

    def _batches(self, indices: Iterator[int]) -> Iterator[list[int]]:
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler[T_co]):
    """The share of one of several processes that train together: equal numbers of samples, no sample twice.

    Args:
        dataset: anything with a length.
        num_replicas: how many processes; default: those of the group of all, or the environment's WORLD_SIZE.
        rank: which of them this is; default: its number in that group, or the environment's RANK.
        shuffle: take the samples in an order that follows from ``seed`` and the epoch, the same in all processes.
        seed: of that order; must be the same everywhere.
        drop_last: leave out what cannot be divided; otherwise some samples are given twice.

    Call `set_epoch` before each epoch, or all epochs have the same order.

    Raises:
        ValueError: a rank outside of 0 to num_replicas - 1. RuntimeError: neither given nor in the environment.

    Example:
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = _given("num_replicas", num_replicas, "size", "WORLD_SIZE")
        self.rank = _given("rank", rank, "rank", "RANK")
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"DistributedSampler: argument 'rank' is {self.rank}, expected 0 to {self.num_replicas - 1}"
            )
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = (
            dataset,
            shuffle,
            seed,
            drop_last,
            0,
        )
        n = len(dataset)
        self.num_samples = n // self.num_replicas if drop_last else -(-n // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas  # subclasses change both

    def __iter__(self) -> Iterator[Any]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            source = tensor.Generator().manual_seed(self.seed + self.epoch)
            order = permutation(n, source)
        repeated = itertools.cycle(order) if order else iter(())
        return itertools.islice(repeated, self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch


def _given(argument: str, value: int | None, question: str, variable: str) -> int:
    """An argument, or what the group of all processes says, or the environment."""
    if value is not None:
        return value
    if processes.default is not None:
        return int(getattr(processes.default, question)())
    if variable not in os.environ:
        raise RuntimeError(
            f"DistributedSampler: argument '{argument}' is not given, there is no group of processes, and the "
            f"environment has no {variable}"
        )
    return int(os.environ[variable])
