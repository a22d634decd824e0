"""Data sets: indexed (`Dataset`), iterated (`IterableDataset`), and ways to combine them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from taeda_data.randomness import on, permutation
from taeda_registry.slots import tensor

T_co = TypeVar("T_co", covariant=True)
_T_co = T_co  # the name in newer programs


class Dataset(Generic[T_co]):
    """Base class of data sets with ``__getitem__`` and, usually, ``__len__``.

    It is indexed by whatever its sampler yields, ints usually. It may also define
    ``__getitems__(indices) -> list of samples`` to read a whole batch at once.

    Example:
        >>> class Squares(Dataset):
        ...     def __getitem__(self, index):
        ...         return index**2
        ...     def __len__(self):
        ...         return 3
        >>> [Squares()[i] for i in range(3)]
        [0, 1, 4]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__ is not defined")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of data sets that only iterate; `DataLoader` reads them in their own order.

    Example:
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Count())
        [0, 1, 2]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tensors that share their first dimension; sample i is the tuple of their i-th slices.

    Args:
        *tensors: tensors of shape (N, ...); none make samples that are empty, and no length.

    Raises:
        AssertionError: first dimensions that differ, or a tensor without dimensions.

    Example:
        >>> len(TensorDataset(taeda.zeros(10, 3), taeda.arange(10)))
        10
    """

    def __init__(self, *tensors: Any) -> None:
        sizes = [tuple(t.shape) for t in tensors]
        if any(not size for size in sizes) or len({size[0] for size in sizes}) > 1:
            raise AssertionError(
                "TensorDataset: Size mismatch between tensors, which must share their first dimension: found shapes "
                f"{sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def gather(self, indices: list[int]) -> list[Any]:
        """The batch that joining the samples at ``indices`` (ints from 0) would give, by one gather for each tensor."""
        places = tensor.tensor(indices, dtype=tensor.int64, **on("cpu"))
        return [t[places] for t in self.tensors]

    def __len__(self) -> int:
        if not self.tensors:
            raise IndexError("TensorDataset: without tensors there is no length")
        return self.tensors[0].shape[0]


class StackDataset(Dataset[T_co]):
    """Several data sets side by side: sample i is the tuple (or, by keywords, dict) of their i-th samples.

    Example:
        >>> StackDataset(range(3), ["a", "b", "c"])[1]
        (1, 'b')
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: expected data sets either by position or by keyword")
        self.datasets: Any = args or kwargs
        lengths = [len(d) for d in (args or kwargs.values())]  # type: ignore[arg-type]
        if len(set(lengths)) != 1:
            raise ValueError(f"StackDataset: data sets must have one length, found {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = (_chosen(d, indices) for d in self.datasets.values())
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(_chosen(d, indices) for d in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _chosen(dataset: Any, indices: list[int]) -> Any:
    """The samples at some indices, all at once where the data set can give them so.

    Raises:
        ValueError: the data set gives another number of samples.
    """
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    chosen = dataset.__getitems__(indices)
    if len(chosen) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__: expected {len(indices)} samples, found {len(chosen)}"
        )
    return chosen


class ConcatDataset(Dataset[T_co]):
    """Data sets one after another.

    Raises:
        AssertionError: nothing to concatenate, or an iterable data set among them.
        IndexError, ValueError: from ``[]``, behind the end or before the beginning.

    Example:
        >>> len(ConcatDataset([range(3), range(4)]))
        7
    """

    def __init__(self, datasets: Sequence[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: argument 'datasets' should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Sequence[Any]) -> list[int]:
        """Where each of the data sets ends."""
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self) -> list[int]:
        """Older name of ``cumulative_sizes``."""
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        length = len(self)
        if not -length <= index < length:
            kind = IndexError if index >= 0 else ValueError  # as programs expect
            raise kind(f"ConcatDataset: index {index} is out of range for {length} samples")
        index %= length
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T_co]):
    """Iterable data sets one after another."""

    def __init__(self, datasets: Sequence[Dataset[Any]]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset[T_co]):
    """The samples of ``dataset`` at ``indices``, in that order.

    Example:
        >>> list(Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]  # type: ignore[index]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        chosen = [self.indices[i] for i in indices]
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(chosen)  # type: ignore[no-any-return]
        return [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[float], generator: Any = None
) -> list[Subset[T_co]]:
    """Disjoint random subsets.

    Args:
        dataset: any data set with a length.
        lengths: numbers of samples that sum up to it, or fractions that sum up to 1 (the rest goes round robin).
        generator: source of the permutation; None is the default generator.

    Raises:
        ValueError: lengths that do not sum up to the length of the data set.

    Example:
        >>> [len(part) for part in random_split(range(10), [0.8, 0.2])]
        [8, 2]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(
                    f"random_split: length of split at index {i} is 0, an empty data set", stacklevel=2
                )
    else:
        counts = [int(n) for n in lengths]
    if sum(counts) != total:
        raise ValueError(
            f"random_split: Sum of input lengths does not equal the length of the input dataset: {sum(counts)} of "
            f"{total} samples"
        )
    order = permutation(total, generator)
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, counts, strict=True)]
