"""Data sets and ways to cut and join them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from taeda_registry.slots import tensor


class Dataset:
    """Base class of data sets with ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__ is not defined")


class IterableDataset(Dataset):
    """Base class of data sets that only iterate."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined")


class TensorDataset(Dataset):
    """Rows of tensors that share their first dimension; ValueError when they do not."""

    def __init__(self, *tensors: Any) -> None:
        lengths = {len(rows) for rows in tensors}
        if len(lengths) != 1:
            raise ValueError(
                f"TensorDataset: expected tensors of one length, found lengths {sorted(lengths)}"
            )
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(rows[index] for rows in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """A data set restricted to given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Data sets one after another."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self.ends = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"ConcatDataset: index {index} is out of range for {len(self)} samples")
        index %= len(self)
        place = next(i for i, end in enumerate(self.ends) if index < end)
        return self.datasets[place][index - (self.ends[place - 1] if place else 0)]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Disjoint random subsets.

    Args:
        dataset: a data set with a length.
        lengths: numbers of samples, or shares that add up to 1.
        generator: source of the order.

    Raises:
        ValueError: lengths that do not add up.
    """
    total = len(dataset)
    if abs(sum(lengths) - 1) < 1e-9:
        lengths = [int(total * share) for share in lengths]
        lengths = [n + (i < total - sum(lengths)) for i, n in enumerate(lengths)]
    if sum(lengths) != total:
        raise ValueError(f"random_split: lengths {list(lengths)} must add up to {total}")
    order = tensor.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(lengths, ends, strict=True)]
