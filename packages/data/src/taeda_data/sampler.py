"""Orders in which samples are read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from taeda_registry.slots import tensor

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Base class of orders: iterating gives indices, ``len`` how many."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... of a sized data source."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class _Seeded(Sampler[int]):
    """Orders drawn from one seed an epoch, so that an epoch can be gone through again.

    The seed is drawn when iterating begins: from ``generator``, or from the default generator.
    """

    generator: Any = None
    _seed: int | None = None  # of the epoch begun last
    _again: int | None = None  # seed that the next epoch takes instead of drawing one

    def __iter__(self) -> Iterator[int]:
        self._seed = draw_seed(self.generator) if self._again is None else self._again
        self._again = None
        return self._order(tensor.Generator().manual_seed(self._seed))

    def _order(self, source: Any) -> Iterator[int]:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The seed of the current epoch, and where ``generator`` stands (None for the default generator)."""
        state = None if self.generator is None else self.generator.get_state()
        return {"seed": self._seed, "generator": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration repeat the saved epoch's order."""
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])
        self._again = state["seed"]


def draw_seed(generator: Any) -> int:
    """A seed from a generator; None is the default one."""
    return int(tensor.randint(0, 1 << 62, (1,), generator=generator, dtype=tensor.int64).item())


class RandomSampler(_Seeded):
    """A random permutation, or draws with replacement.

    Args:
        data_source: anything with a length.
        replacement: draw independently instead of permuting.
        num_samples: how many indices an epoch has; default: all.
        generator: source of randomness; None draws one seed an epoch from the default generator.

    Raises:
        ValueError: num_samples that is no positive int.
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
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(
                f"RandomSampler: argument 'num_samples' must be a positive int, found {num_samples!r}"
            )
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _order(self, source: Any) -> Iterator[int]:
        n, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            if n:
                yield from tensor.randint(0, n, (wanted,), generator=source, dtype=tensor.int64).tolist()
            return
        while wanted > 0 and n:
            order = tensor.randperm(n, generator=source).tolist()
            yield from order[:wanted]
            wanted -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_Seeded):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def _order(self, source: Any) -> Iterator[int]:
        return (self.indices[i] for i in tensor.randperm(len(self.indices), generator=source).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_Seeded):
    """Indices drawn with probability proportional to ``weights``."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"WeightedRandomSampler: argument 'num_samples' must be a positive int, found {num_samples!r}"
            )
        self.weights = tensor.as_tensor(weights, dtype=tensor.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler: argument 'weights' must be 1-d, found shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def _order(self, source: Any) -> Iterator[int]:
        drawn = tensor.multinomial(self.weights, self.num_samples, self.replacement, generator=source)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler; the last may be shorter unless ``drop_last``."""

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
