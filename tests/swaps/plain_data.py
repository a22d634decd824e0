"""Stand-in provider of slot ``data``: whole tensors cut into shuffled batches."""

from collections.abc import Iterator
from typing import Any

from taeda_registry.slots import tensor

__taeda_interface__ = {"data": "1.0"}


class TensorDataset:
    """Tensors that share their first dimension."""

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tensors


class DataLoader:
    """Batches of a ``TensorDataset``, taken by one index operation each."""

    def __init__(self, dataset: TensorDataset, batch_size: int, shuffle: bool = False) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[list[Any]]:
        count = len(self.dataset.tensors[0])
        order = tensor.randperm(count) if self.shuffle else tensor.arange(count)
        for start in range(0, count, self.batch_size):
            chosen = order[start : start + self.batch_size]
            yield [item[chosen] for item in self.dataset.tensors]
