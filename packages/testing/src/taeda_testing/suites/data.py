"""Behaviour of a data provider: data sets, orders, batches, seeds, errors."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("data")
CHECKS = suite.checks
Pair = namedtuple("Pair", "x y")


def _squares(part: Any, n: int = 10) -> Any:
    """A data set of numbers and their squares."""

    class Squares(part.Dataset):
        def __len__(self) -> int:
            return n

        def __getitem__(self, index: int) -> tuple[int, float]:
            if not 0 <= index < n:
                raise IndexError(index)
            return index, float(index**2)

    return Squares()


def _batches(loader: Any) -> list[list[int]]:
    """First entries of all batches."""
    return [batch[0].tolist() for batch in loader]


@suite.check("DataLoader")
def order_and_batches(part: Any) -> None:
    """Batches come in order, the last one short, or left out with drop_last; `len` counts them."""
    expected = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    loader = part.DataLoader(_squares(part), batch_size=4)
    equal("batches of 10 by 4", _batches(loader), expected)
    equal("the same in the second epoch", _batches(loader), expected)
    equal("len", len(loader), 3)
    dropped = part.DataLoader(_squares(part), batch_size=4, drop_last=True)
    equal("batches with drop_last", _batches(dropped), expected[:2])
    equal("len with drop_last", len(dropped), 2)
    equal("default batch size", _batches(part.DataLoader(_squares(part, 3))), [[0], [1], [2]])


@suite.check("DataLoader")
def single_samples(part: Any) -> None:
    """With batch_size None, samples come one by one and unbatched."""
    found = list(part.DataLoader(_squares(part, 3), batch_size=None))
    equal("samples", [tuple(float(v) for v in sample) for sample in found], [(0, 0), (1, 1), (2, 4)])


@suite.check("DataLoader", "RandomSampler")
def shuffling(part: Any) -> None:
    """Shuffling gives every sample once, in another order each epoch."""
    loader = part.DataLoader(_squares(part, 50), batch_size=7, shuffle=True)
    tensor.manual_seed(0)
    epochs = [[i for batch in _batches(loader) for i in batch] for _ in range(2)]
    for epoch in epochs:
        equal("sorted samples of an epoch", sorted(epoch), list(range(50)))
    true("two epochs", epochs[0] != epochs[1], "different orders")
    true("the first epoch", epochs[0] != list(range(50)), "another order than the data set's")


@suite.check("DataLoader")
def seeds(part: Any) -> None:
    """The order follows from `manual_seed`, or from the loader's own generator alone."""
    loader = part.DataLoader(_squares(part, 30), batch_size=5, shuffle=True)
    orders = []
    for _ in range(2):
        tensor.manual_seed(17)
        orders.append(_batches(loader))
    equal("order after the same seed", orders[1], orders[0])
    own = []
    for other in (1, 2):
        tensor.manual_seed(other)
        source = tensor.Generator().manual_seed(9)
        own.append(
            _batches(part.DataLoader(_squares(part, 30), batch_size=5, shuffle=True, generator=source))
        )
    equal("order from equal generators", own[1], own[0])


@suite.check("DataLoader", "default_collate")
def dtypes_of_batches(part: Any) -> None:
    """Python ints become int64, floats float64, tensors and arrays keep their dtype."""
    collate = part.default_collate
    for samples, dtype in (
        ([1, 2], "int64"),
        ([1.5, 2.5], "float64"),
        ([np.float32(1), np.float32(2)], "float32"),
        ([np.ones(2, np.int32)] * 2, "int32"),
        ([tensor.ones(2), tensor.ones(2)], "float32"),
    ):
        found = collate(samples)
        equal(f"dtype of default_collate({samples})", found.dtype, getattr(tensor, dtype))
        equal("its first size", len(found), 2)


@suite.check("default_collate")
def collating_containers(part: Any) -> None:
    """Tuples, named tuples, dicts and nested containers are joined item by item; strings stay a list."""
    collate = part.default_collate
    first, second = collate([(1, [2.0, "a"]), (3, [4.0, "b"])])
    close("numbers of tuples", first, [1, 3])
    close("numbers of inner lists", second[0], [2, 4])
    equal("strings", list(second[1]), ["a", "b"])
    mapping = collate([{"k": np.zeros(2)}, {"k": np.ones(2)}])
    close("entries of dicts", mapping["k"], [[0, 0], [1, 1]])
    pair = collate([Pair(1, 2), Pair(3, 4)])
    true("named tuples", isinstance(pair, Pair), "the same named tuple")
    close("fields of named tuples", pair.y, [2, 4])


@suite.check("default_collate")
def samples_that_do_not_join(part: Any) -> None:
    """Sequences or tensors of unequal sizes, and unknown objects, are errors."""
    with raises("default_collate([[1], [1, 2]])", ValueError, RuntimeError):
        part.default_collate([[1], [1, 2]])
    with raises("default_collate of shapes (2,) and (3,)", ValueError, RuntimeError):
        part.default_collate([tensor.zeros(2), tensor.zeros(3)])
    with raises("default_collate([object()])", TypeError):
        part.default_collate([object(), object()])


@suite.check("DataLoader")
def own_collation(part: Any) -> None:
    """`collate_fn` gets the list of samples, and its result is the batch."""
    found = list(part.DataLoader(_squares(part, 5), batch_size=2, collate_fn=lambda samples: samples))
    equal("first batch", [tuple(sample) for sample in found[0]], [(0, 0.0), (1, 1.0)])
    equal("number of batches", len(found), 3)


@suite.check("TensorDataset", "DataLoader")
def tensor_data_sets(part: Any) -> None:
    """Rows of tensors of one length; other lengths are an error; batches equal slices."""
    x, y = tensor.arange(12).reshape(6, 2), tensor.arange(6)
    data = part.TensorDataset(x, y)
    equal("len", len(data), 6)
    close("data[2][0]", data[2][0], [4, 5])
    for i, (rows, labels) in enumerate(part.DataLoader(data, batch_size=4)):
        close(f"rows of batch {i}", rows, array_of(x)[4 * i : 4 * i + 4])
        close(f"labels of batch {i}", labels, array_of(y)[4 * i : 4 * i + 4])
    with raises("TensorDataset of 6 and 5 rows", ValueError, AssertionError):
        part.TensorDataset(x, y[:5])


@suite.check("Subset", "ConcatDataset")
def parts_and_sums(part: Any) -> None:
    """`Subset` picks, `ConcatDataset` appends, both with the right length and errors."""
    data = _squares(part)
    chosen = part.Subset(data, [7, 2])
    equal("samples of Subset", [chosen[i][0] for i in range(len(chosen))], [7, 2])
    joined = part.ConcatDataset([chosen, _squares(part, 2)])
    equal("samples of ConcatDataset", [joined[i][0] for i in range(len(joined))], [7, 2, 0, 1])
    equal("its last sample by -1", joined[-1][0], 1)
    with raises("ConcatDataset[9]", IndexError, ValueError):
        joined[9]


@suite.check("random_split")
def random_splits(part: Any) -> None:
    """Disjoint parts of given lengths or shares; wrong sums are an error."""
    data = _squares(part)
    for lengths, expected in (([7, 3], [7, 3]), ([0.5, 0.5], [5, 5])):
        parts = part.random_split(data, lengths, generator=tensor.Generator().manual_seed(0))
        equal(f"lengths of random_split({lengths})", [len(p) for p in parts], expected)
        everything = sorted(p[i][0] for p in parts for i in range(len(p)))
        equal("their samples together", everything, list(range(10)))
    with raises("random_split(10, [7, 7])", ValueError):
        part.random_split(data, [7, 7])


@suite.check("SequentialSampler", "RandomSampler", "BatchSampler", "Sampler")
def samplers(part: Any) -> None:
    """Orders have the right length and contents; batches of indices too."""
    data = _squares(part, 6)
    equal("SequentialSampler", list(part.SequentialSampler(data)), list(range(6)))
    equal("sorted RandomSampler", sorted(part.RandomSampler(data)), list(range(6)))
    drawn = list(part.RandomSampler(data, replacement=True, num_samples=40))
    true("40 draws with replacement", len(drawn) == 40 and set(drawn) <= set(range(6)), "40 of 0..5")
    batches = part.BatchSampler(part.SequentialSampler(data), 4, False)
    equal("BatchSampler", [list(batch) for batch in batches], [[0, 1, 2, 3], [4, 5]])
    equal("len of BatchSampler", len(batches), 2)
    for kind in (part.SequentialSampler(data), part.RandomSampler(data)):
        true(type(kind).__name__, isinstance(kind, part.Sampler), "a Sampler")


@suite.check("DataLoader", "Sampler")
def own_samplers(part: Any) -> None:
    """Any iterable serves as sampler or batch_sampler."""
    data = _squares(part, 6)
    equal(
        "sampler=[5, 0, 3]", _batches(part.DataLoader(data, batch_size=2, sampler=[5, 0, 3])), [[5, 0], [3]]
    )
    loader = part.DataLoader(data, batch_sampler=[[1], [2, 3]])
    equal("batch_sampler=[[1], [2, 3]]", _batches(loader), [[1], [2, 3]])


@suite.check("IterableDataset", "DataLoader")
def streams_of_samples(part: Any) -> None:
    """A data set that only iterates is batched in its own order, anew each epoch."""

    class Count(part.IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    loader = part.DataLoader(Count(), batch_size=2)
    for epoch in range(2):
        equal(f"batches of epoch {epoch}", [batch.tolist() for batch in loader], [[0, 1], [2, 3], [4]])
    with raises("shuffle of an IterableDataset", ValueError):
        part.DataLoader(Count(), shuffle=True)


@suite.check("DataLoader")
def errors_of_the_data_set(part: Any) -> None:
    """An exception of the data set arrives with its own type and attributes, and the loader can be used again."""

    class Broken(Exception):
        def __init__(self, index: int) -> None:
            super().__init__(f"sample {index} is broken")
            self.index = index

    class Data(part.Dataset):
        broken = True

        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            if index == 2 and self.broken:
                raise Broken(index)
            return index

    data = Data()
    loader = part.DataLoader(data, batch_size=2)
    with raises("reading a broken sample", Broken, words=["sample 2"]):
        list(loader)
    data.broken = False
    equal("batches once it is mended", [batch.tolist() for batch in loader], [[0, 1], [2, 3]])


@suite.check("DataLoader")
def wrong_options(part: Any) -> None:
    """Options that exclude each other, and sizes that make no sense, are ValueErrors."""
    data = _squares(part)
    for text, options in (
        ("batch_size=0", {"batch_size": 0}),
        ("sampler with shuffle", {"sampler": [1], "shuffle": True}),
        ("batch_sampler with batch_size", {"batch_sampler": [[1]], "batch_size": 2}),
        ("batch_sampler with drop_last", {"batch_sampler": [[1]], "drop_last": True}),
    ):
        with raises(f"DataLoader({text})", ValueError):
            part.DataLoader(data, **options)


@suite.check("DataLoader")
def epochs_side_by_side(part: Any) -> None:
    """Two iterators of one loader do not disturb each other, and an epoch may be left early."""
    loader = part.DataLoader(_squares(part, 6), batch_size=2)
    pairs = [(a[0].tolist(), b[0].tolist()) for a, b in zip(loader, loader, strict=True)]
    equal("two iterators in step", pairs, [([0, 1],) * 2, ([2, 3],) * 2, ([4, 5],) * 2])
    next(iter(loader))
    equal("a full epoch after one that was left", _batches(loader), [[0, 1], [2, 3], [4, 5]])


@suite.check("DataLoader")
def empty_data(part: Any) -> None:
    """A data set without samples gives no batches."""
    equal("batches of nothing", list(part.DataLoader(_squares(part, 0), batch_size=4)), [])
