"""Steps that are read by keys (torch.utils.data.datapipes.map)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from taeda_data.datapipes._common import named_after_kind, order_seed, own_copy, positive, sized
from taeda_data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The items of a sequence or a dict, of a copy of it unless ``deepcopy`` is False."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = own_copy(sequence, deepcopy)

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return sized(self.sequence)


def _same(item: Any) -> Any:
    return item


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """``fn`` of each item."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable[..., Any] = _same) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return sized(self.datapipe)


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The items of one pipe after the other, by numbers."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        rest = index
        for pipe in self.datapipes:
            if rest < len(pipe):
                return pipe[rest]
            rest -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(sized(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(Concater):
    """Tuples of the items that the pipes have under the same key."""

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(sized(pipe) for pipe in self.datapipes)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Chunks of ``batch_size`` items; the last one may be shorter, or is dropped."""

    def __init__(
        self,
        datapipe: MapDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:
        self.datapipe, self.batch_size = datapipe, positive("Batch size", batch_size)
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        first = index * self.batch_size
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class(self.datapipe[i] for i in range(first, last))

    def __len__(self) -> int:
        return (sized(self.datapipe) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


class Shuffler(IterDataPipe):
    """The items in random order, as a pipe that is read from its beginning; ``indices``: the keys, if no numbers."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed = True, None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Shuffle from now on, or not."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """What the next order is drawn by; without it a number of the library's generator."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        order = self.indices
        if self._enabled:
            drawn = random.Random(order_seed() if self._seed is None else self._seed)
            self._seed = None
            order = drawn.sample(self.indices, len(self.indices))
        for index in order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.indices)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
named_after_kind(globals(), __all__)
