"""Steps that are read from their beginning (torch.utils.data.datapipes.iter)."""

from __future__ import annotations

import copy as copies
import fnmatch
import os
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from taeda_data.collate import default_collate
from taeda_data.datapipes._common import named_after_kind, of_columns, order_seed, own_copy, positive, sized
from taeda_data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from taeda_data.reading import get_worker_info
from taeda_data.sampler import SequentialSampler

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper",
    "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher",
    "Zipper",
]  # fmt: skip


class IterableWrapper(IterDataPipe):
    """The items of an iterable, of a copy of it made at each reading unless ``deepcopy`` is False."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        yield from own_copy(self.iterable, self.deepcopy)

    def __len__(self) -> int:
        return sized(self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """``fn`` of each item, or of its columns ``input_col``, put into ``output_col`` (-1: at the end)."""

    def __init__(
        self, datapipe: Iterable[Any], fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col
        of_columns(fn, input_col, output_col)

    def __iter__(self) -> Iterator[Any]:
        apply = of_columns(self.fn, self.input_col, self.output_col)
        for item in self.datapipe:
            yield apply(item)

    def __len__(self) -> int:
        return sized(self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches of items as tensors, by ``collate_fn`` or `default_collate`."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        conversion: Callable[..., Any] | None = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        fn = collate_fn if collate_fn is not None else conversion
        if not callable(fn):
            raise NotImplementedError(
                "collate: conversions by columns are for data frames, which pipes do not have"
            )
        super().__init__(datapipe, fn=fn)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """The items for which ``filter_fn``, of them or of their columns ``input_col``, says True."""

    def __init__(
        self, datapipe: Iterable[Any], filter_fn: Callable[..., bool], input_col: Any = None
    ) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            columns = self.input_col
            if columns is None:
                kept = self.filter_fn(item)
            elif isinstance(columns, (list, tuple)):
                kept = self.filter_fn(*(item[col] for col in columns))
            else:
                kept = self.filter_fn(item[columns])
            if not isinstance(kept, bool):
                raise ValueError(f"Boolean output is required for `filter_fn` of Filter, got {type(kept)}")
            if kept:
                yield item


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """The items of one pipe after the other."""

    def __init__(self, *datapipes: Iterable[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(sized(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(Concater):
    """Tuples of one item of each pipe, until the shortest ends."""

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes)  # noqa: B905 (ends with the shortest)

    def __len__(self) -> int:
        return min(sized(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(Concater):
    """One item of each pipe in turn, until the shortest ends."""

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*self.datapipes):  # noqa: B905 (ends with the shortest)
            yield from items

    def __len__(self) -> int:
        return min(sized(pipe) for pipe in self.datapipes) * len(self.datapipes)


class _Dealer:
    """Reads a source for several children, each at its own pace, and keeps what the slower ones have not read."""

    def __init__(self, source: Iterable[Any], count: int, buffer_size: int) -> None:
        self.source, self.count = source, positive("num_instances", count)
        if buffer_size == 0:
            raise ValueError("buffer_size must be positive or -1 (no bound), found 0")
        self.buffer_size = buffer_size
        self.items: Iterator[Any] | None = None
        self.waiting: list[deque[Any]] = [deque() for _ in range(count)]
        self.begun: set[int] = set()

    def __getstate__(self) -> dict[str, Any]:
        """What makes it; a copy reads from the beginning."""
        waiting: list[deque[Any]] = [deque() for _ in range(self.count)]
        return {**self.__dict__, "items": None, "waiting": waiting, "begun": set()}

    def begin(self, child: int) -> None:
        """A child reads anew: the source too, once any child has begun twice."""
        if self.items is None or child in self.begun:
            self.items = iter(self.source)
            self.waiting = [deque() for _ in range(self.count)]
            self.begun = set()
        self.begun.add(child)

    def deal(self, item: Any) -> Iterable[tuple[int, Any]]:
        """Which children get an item."""
        raise NotImplementedError(f"{type(self).__name__}.deal is not defined")

    def next_of(self, child: int) -> Any:
        """The next item of a child; StopIteration at the end."""
        assert self.items is not None
        while not self.waiting[child]:
            for to, given in self.deal(next(self.items)):
                self.waiting[to].append(given)
            if self.buffer_size > 0 and sum(map(len, self.waiting)) > self.buffer_size * max(
                1, self.per_item()
            ):
                raise BufferError(
                    f"{type(self).__name__.strip('_')} buffer overflow, buffer size {self.buffer_size} is insufficient."
                )
        return self.waiting[child].popleft()

    def per_item(self) -> int:
        """How many children get the same item."""
        return 1


def _itself(item: Any) -> Any:
    return item


class _Fork(_Dealer):
    def __init__(self, source: Any, count: int, buffer_size: int, copy: str | None) -> None:
        super().__init__(source, count, buffer_size)
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method {copy!r}, choose from one of None, 'shallow' or 'deep'")
        self.copy = {None: _itself, "shallow": copies.copy, "deep": copies.deepcopy}[copy]

    def deal(self, item: Any) -> Iterable[tuple[int, Any]]:
        return [(child, self.copy(item) if child else item) for child in range(self.count)]

    def per_item(self) -> int:
        return self.count


class _Demultiplex(_Dealer):
    def __init__(
        self, source: Any, count: int, classify: Callable[..., Any], drop_none: bool, size: int
    ) -> None:
        super().__init__(source, count, size)
        self.classify, self.drop_none = classify, drop_none

    def deal(self, item: Any) -> Iterable[tuple[int, Any]]:
        chosen = self.classify(item)
        if chosen is None and self.drop_none:
            return []
        if chosen is None or not 0 <= chosen < self.count:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.count - 1}. {chosen} is returned."
            )
        return [(chosen, item)]


class _Child(IterDataPipe):
    """One of the pipes that a source was divided into."""

    def __init__(self, main: _Dealer, number: int) -> None:
        self.main_datapipe, self.instance_id = main, number

    def __iter__(self) -> Iterator[Any]:
        self.main_datapipe.begin(self.instance_id)
        while True:
            try:
                item = self.main_datapipe.next_of(self.instance_id)
            except StopIteration:
                return
            yield item

    def __len__(self) -> int:
        if isinstance(self.main_datapipe, _Demultiplex):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return sized(self.main_datapipe.source)


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """A list of ``num_instances`` pipes with the same items; at most ``buffer_size`` of them wait (-1: any number)."""

    def __new__(  # type: ignore[misc]
        cls, datapipe: Iterable[Any], num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> list[_Child]:
        main = _Fork(datapipe, num_instances, buffer_size, copy)
        return [_Child(main, number) for number in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """A list of ``num_instances`` pipes: an item goes to that whose number ``classifier_fn`` gives for it."""

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: Iterable[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> list[_Child]:
        main = _Demultiplex(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_Child(main, number) for number in range(num_instances)]


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Chunks of ``batch_size`` items; the last one may be shorter, or is dropped."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:
        self.datapipe, self.batch_size = datapipe, positive("Batch size", batch_size)
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        items = iter(self.datapipe)
        while batch := list(islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        return (sized(self.datapipe) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe):
    """The items of lists, ``unbatch_level`` lists deep; -1 as deep as they go."""

    def __init__(self, datapipe: Iterable[Any], unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield from self._dive(item, self.unbatch_level)

    def _dive(self, item: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level < 0 and not isinstance(item, list)):
            yield item
            return
        if not isinstance(item, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for below in item:
            yield from self._dive(below, level - 1 if level > 0 else level)


@functional_datapipe("groupby")
class Grouper(IterDataPipe):
    """Chunks of items with the same key, of ``group_size`` items at most; about ``buffer_size`` items wait."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        group_key_fn: Callable[[Any], Hashable],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        bound = min(
            (size for size in (group_size, buffer_size) if size is not None and size > 0), default=None
        )
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be positive and at most buffer_size")
        if guaranteed_group_size is not None and (bound is None or not 0 < guaranteed_group_size <= bound):
            raise ValueError("guaranteed_group_size must be positive and at most group_size and buffer_size")
        self.guaranteed_group_size = (
            guaranteed_group_size if guaranteed_group_size is not None else group_size
        )

    def __iter__(self) -> Iterator[Any]:
        groups: OrderedDict[Hashable, list[Any]] = OrderedDict()
        waiting = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            group = groups.setdefault(key, [])
            group.append(item)
            waiting += 1
            if self.group_size is not None and len(group) == self.group_size:
                waiting -= len(groups.pop(key))
                yield self._wrapped(key, group)
            if waiting == self.max_buffer_size:
                key, group = self._largest(groups)
                waiting -= len(groups.pop(key))
                if group:
                    yield self._wrapped(key, group)
        for key, group in groups.items():
            yield self._wrapped(key, group)

    def _largest(self, groups: dict[Hashable, list[Any]]) -> tuple[Hashable, list[Any]]:
        key = max(groups, key=lambda key: len(groups[key]))
        group = groups[key]
        if self.guaranteed_group_size is not None and len(group) < self.guaranteed_group_size:
            if not self.drop_remaining:
                raise RuntimeError(f"Failed to group items {[str(item) for item in group]}")
            return key, []
        return key, group

    def _wrapped(self, key: Hashable, group: list[Any]) -> Any:
        return (key, DataChunk(group)) if self.keep_key else DataChunk(group)


class Sampler(IterDataPipe):
    """The items of a data set read by keys, in the order of a sampler."""

    def __init__(
        self,
        datapipe: Any,
        sampler: type = SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self) -> Iterator[Any]:
        yield from self.sampler

    def __len__(self) -> int:
        return sized(self.sampler)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """The items in random order, each taken from the ``buffer_size`` that wait."""

    def __init__(self, datapipe: Iterable[Any], *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        self.buffer_size = positive("buffer_size", buffer_size)
        self.datapipe = datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level)
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Shuffle from now on, or not."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """What the next order is drawn by; without it a number of the library's generator."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Draws the order of the reading to come."""
        if self._enabled:
            self._rng.seed(order_seed() if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        waiting: list[Any] = []
        for item in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(item)
                continue
            at = self._rng.randint(0, len(waiting) - 1)
            chosen, waiting[at] = waiting[at], item
            yield chosen
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))

    def __len__(self) -> int:
        return sized(self.datapipe)


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe):
    """Every n-th item: of a loader's n workers each gets others."""

    def __init__(self, source_datapipe: Iterable[Any], sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[Any, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        """True."""
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Keeps item ``instance_id`` of every ``num_of_instances``; several groups divide one after the other."""
        if not 0 <= instance_id < num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for count, number in self.groups.values():
            self.instance_id += self.num_of_instances * number
            self.num_of_instances *= count

    def _share(self) -> tuple[int, int]:
        worker = get_worker_info()
        if worker is None or self.groups:
            return self.num_of_instances, self.instance_id
        return worker.num_workers, worker.id

    def __iter__(self) -> Iterator[Any]:
        count, number = self._share()
        yield from islice(self.source_datapipe, number, None, count)

    def __len__(self) -> int:
        count, number = self._share()
        return (sized(self.source_datapipe) - number + count - 1) // count


@functional_datapipe("list_files")
class FileLister(IterDataPipe):
    """Paths of the files in folders whose names fit one of the masks (as shells read them)."""

    def __init__(
        self,
        root: Any = ".",
        masks: Any = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapper(roots)
        self.masks, self.recursive, self.abspath, self.length = masks, recursive, abspath, length

    def __iter__(self) -> Iterator[str]:
        masks = [self.masks] if isinstance(self.masks, str) else list(self.masks)
        for root in self.datapipe:
            for folder, below, names in os.walk(os.path.abspath(root) if self.abspath else root):
                below[:] = sorted(below) if self.recursive else []
                for name in sorted(names):
                    if masks in ([], [""]) or any(fnmatch.fnmatch(name, mask) for mask in masks):
                        yield os.path.join(folder, name)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpener(IterDataPipe):
    """(path, open file) of each path; the reader closes the files."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = mode if mode.startswith("r") else f"r{mode}"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path in self.datapipe:
            yield path, open(path, self.mode, encoding=self.encoding)  # noqa: SIM115 (the reader closes it)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """(name, bytes) of each (name, open file), whole or in chunks of ``chunk`` bytes."""

    def __init__(self, datapipe: Iterable[tuple[str, Any]], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name, stream in self.datapipe:
            try:
                while data := stream.read(self.chunk):
                    yield name, data
            finally:
                close = getattr(stream, "close", None)
                if close is not None:
                    close()


named_after_kind(globals(), __all__)
