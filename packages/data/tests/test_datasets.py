"""Data sets, samplers and joining samples."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import taeda_data as data
from taeda_registry.slots import tensor as tt

Point = namedtuple("Point", "x y")


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i * i


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_tensor_dataset():
    ds = data.TensorDataset(tt.arange(6).reshape(3, 2), tt.tensor([7, 8, 9]))
    x, y = ds[1]
    assert (len(ds), x.tolist(), y.item()) == (3, [2, 3], 8)
    assert [t.tolist() for t in ds.gather([2, 0])] == [[[4, 5], [0, 1]], [9, 7]]


def test_tensor_dataset_of_nothing():
    ds = data.TensorDataset()
    assert ds[0] == ()
    with pytest.raises(IndexError, match="no length"):
        len(ds)


@pytest.mark.parametrize("tensors", [((2,), (3,)), ((), (2,))])
def test_tensor_dataset_needs_one_length(tensors):
    with pytest.raises((AssertionError, ValueError), match="TensorDataset"):
        data.TensorDataset(*(tt.zeros(shape) for shape in tensors))


def test_samples_by_lists_of_indices():
    class Batched(data.Dataset):
        def __init__(self, missing=0):
            self.missing = missing

        def __getitem__(self, index):
            raise AssertionError("read one by one")

        def __getitems__(self, indices):
            return [-i for i in indices][: len(indices) - self.missing]

        def __len__(self):
            return 4

    assert data.StackDataset(Batched(), [5, 6, 7, 8]).__getitems__([0, 3]) == [(0, 5), (-3, 8)]
    assert data.StackDataset(a=Batched(), b=[5, 6, 7, 8]).__getitems__([1]) == [{"a": -1, "b": 6}]
    with pytest.raises(ValueError, match=r"Batched.__getitems__: expected 2 samples, found 1"):
        data.StackDataset([5, 6, 7, 8], Batched(missing=1)).__getitems__([0, 3])
    with pytest.raises(IndexError):
        data.StackDataset(Batched(), [5, 6, 7, 8]).__getitems__([0, 4])
    array = np.arange(5) * 10
    assert data.Subset(array, [4, 2, 0])[[0, 2]].tolist() == [40, 0]
    assert data.Subset(data.Subset(array, [4, 2, 0]), [2, 1])[:].tolist() == [0, 20]


def test_sequences_that_are_made_of_something_else_become_lists():
    collated = data.default_collate([range(2), range(2)])
    assert [column.tolist() for column in collated] == [[0, 0], [1, 1]]


def test_combinations():
    both = Squares(3) + Squares(2)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 0, 1]
    assert both[-1] == 1
    with pytest.raises(IndexError, match="out of range for 5"):
        both[5]
    assert list(Count(2) + Count(3)) == [0, 1, 0, 1, 2]
    assert data.StackDataset(Squares(3), Squares(3))[2] == (4, 4)
    assert data.StackDataset(a=Squares(3), b=Squares(3))[2] == {"a": 4, "b": 4}
    subset = data.Subset(Squares(5), [4, 0])
    assert (len(subset), subset[0], subset.__getitems__([1, 0])) == (2, 16, [0, 16])


@pytest.mark.parametrize("build", [lambda: data.ConcatDataset([]), lambda: data.ConcatDataset([Count(1)])])
def test_concatenation_errors(build):
    with pytest.raises(AssertionError, match="ConcatDataset"):
        build()


def test_a_single_sample_is_split_by_shares():
    with pytest.warns(UserWarning, match="split at index 1 is 0"):
        parts = data.random_split(Squares(1), [0.5, 0.5])
    assert [len(part) for part in parts] == [1, 0]


def test_random_split():
    parts = data.random_split(Squares(10), [0.5, 0.25, 0.25], tt.Generator().manual_seed(3))
    assert [len(p) for p in parts] == [6, 2, 2]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    again = data.random_split(Squares(10), [6, 2, 2], tt.Generator().manual_seed(3))
    assert [p.indices for p in again] == [p.indices for p in parts]
    with pytest.raises(ValueError, match="length of the input dataset: 9 of 10"):
        data.random_split(Squares(10), [5, 4])


def seeded():
    return tt.Generator().manual_seed(11)


def test_random_orders():
    source = range(20)
    once, again = (
        data.RandomSampler(source, generator=seeded()),
        data.RandomSampler(source, generator=seeded()),
    )
    first = list(once)
    assert first == list(again)
    assert sorted(first) == list(source)
    assert list(once) != first
    drawn = list(data.RandomSampler(source, replacement=True, num_samples=50, generator=seeded()))
    assert len(drawn) == 50
    assert set(drawn) <= set(source)
    more = list(data.RandomSampler(source, num_samples=45, generator=seeded()))
    assert sorted(more[:20]) == sorted(more[20:40]) == list(source)
    assert len(more) == 45
    assert sorted(data.SubsetRandomSampler([5, 7, 9], generator=seeded())) == [5, 7, 9]


def test_weighted_orders():
    drawn = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000, generator=seeded()))
    assert 0 not in drawn
    assert drawn.count(2) / drawn.count(1) == pytest.approx(3, rel=0.2)
    assert sorted(data.WeightedRandomSampler([1.0, 1.0, 2.0], 3, replacement=False, generator=seeded())) == [
        0,
        1,
        2,
    ]


def test_batches_of_indices():
    batches = data.BatchSampler(range(7), 3, False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(batches) == 3
    assert list(data.BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]]


def test_epochs_longer_than_memory():
    """Programs that count steps instead of epochs ask for 1e10 draws."""
    sampler = data.RandomSampler(
        Squares(7), replacement=True, num_samples=int(1e10), generator=tt.Generator().manual_seed(3)
    )
    drawn = [index for index, _ in zip(sampler, range(5000), strict=False)]
    assert len(sampler) == 10**10 and set(drawn) == set(range(7))
    counts = np.bincount(drawn)
    assert abs(counts - 5000 / 7).max() < 120  # 4.8 deviations
    short = data.RandomSampler(Squares(7), replacement=True, num_samples=2500)
    assert len(list(short)) == 2500


@pytest.mark.parametrize(
    ("error", "build"),
    [
        (ValueError, lambda: data.RandomSampler(range(3), num_samples=0)),
        (ValueError, lambda: data.RandomSampler([])),
        (ValueError, lambda: data.DataLoader([], shuffle=True)),
        (ValueError, lambda: data.WeightedRandomSampler([1.0], 1, replacement=1)),
        (TypeError, lambda: data.RandomSampler(range(3), replacement=1)),
        (ValueError, lambda: data.BatchSampler(range(3), 0, False)),
        (ValueError, lambda: data.BatchSampler(range(3), 2, None)),
        (ValueError, lambda: data.WeightedRandomSampler([1.0], 0)),
        (ValueError, lambda: data.WeightedRandomSampler([[1.0]], 1)),
    ],
)
def test_sampler_errors(error, build):
    with pytest.raises(TypeError, match="no len"):
        data.RandomSampler(iter([1]))
    with pytest.raises(error, match="Sampler: argument"):
        build()


def test_collate_through_containers():
    batch = [
        {"t": tt.tensor([1.0, 2.0]), "n": (1, 2.5), "s": "a", "p": Point(np.float32(1), np.arange(2))},
        {"t": tt.tensor([3.0, 4.0]), "n": (3, 4.5), "s": "b", "p": Point(np.float32(2), np.arange(2) + 5)},
    ]
    joined = data.default_collate(batch)
    assert joined["t"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    ints, floats = joined["n"]
    assert (ints.tolist(), ints.dtype) == ([1, 3], tt.int64)
    assert (floats.tolist(), floats.dtype) == ([2.5, 4.5], tt.float64)
    assert joined["s"] == ["a", "b"]
    assert isinstance(joined["p"], Point)
    assert joined["p"].x.dtype == tt.float32
    assert joined["p"].y.tolist() == [[0, 1], [5, 6]]


def test_words_of_arrays_stay_words():
    words = np.array(["a", "bc"])
    assert data.default_collate(list(words)) == ["a", "bc"] == data.default_collate(words)
    assert data.default_collate([np.bytes_(b"x"), np.bytes_(b"y")]) == [b"x", b"y"]
    rows = [{"name": word, "size": len(word)} for word in words]
    assert data.default_collate(rows)["name"] == ["a", "bc"]


def test_collate_keeps_mapping_types_and_bools():
    joined = data.default_collate([OrderedDict(a=True), OrderedDict(a=False)])
    assert isinstance(joined, OrderedDict)
    assert joined["a"].tolist() == [True, False]
    samples = [defaultdict(int, a=np.int64(i)) for i in range(2)]
    joined, (single, _) = data.default_collate(samples), data.DataLoader(samples, batch_size=None)
    assert (joined["a"].tolist(), joined["b"], single["a"].item(), single["b"]) == ([0, 1], 0, 0, 0)
    assert samples[0] == {"a": 0} and isinstance(samples[0]["a"], np.int64)


@pytest.mark.parametrize(
    ("error", "batch", "text"),
    [
        (TypeError, [object()], "found object"),
        (RuntimeError, [[1, 2], [1]], "must have one length"),
        (TypeError, [np.array(["a"])], "cannot become tensors"),
    ],
)
def test_collate_errors(error, batch, text):
    with pytest.raises(error, match=text):
        data.default_collate(batch)


def test_convert():
    out = data.default_convert({"a": np.arange(2), "b": [np.float64(1.5), "x"], "c": 3})
    assert out["a"].tolist() == [0, 1]
    assert out["b"][0].item() == 1.5
    assert (out["b"][1], out["c"]) == ("x", 3)


@dataclass
class Pair:
    x: object
    y: object


class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high


def join_intervals(batch, *, collate_fn_map):
    return Interval(min(i.low for i in batch), max(i.high for i in batch))


def test_dataclasses_are_joined_by_fields():
    batch = data.default_collate([Pair(1, np.ones(2)), Pair(2, np.zeros(2))])
    assert isinstance(batch, Pair) and batch.x.tolist() == [1, 2] and batch.y.tolist() == [[1, 1], [0, 0]]
    converted = data.default_convert(Pair("a", np.arange(2)))
    assert converted.x == "a" and converted.y.tolist() == [0, 1] and tt.Tensor in type(converted.y).__mro__


def test_further_types_are_joined_as_registered(monkeypatch):
    samples = [{"range": Interval(1, 5), "n": 1}, {"range": Interval(0, 3), "n": 2}]
    with pytest.raises(TypeError, match="found Interval"):
        data.default_collate(samples)
    monkeypatch.setitem(data.default_collate_fn_map, Interval, join_intervals)
    batch = data.default_collate(samples)
    assert (batch["range"].low, batch["range"].high, batch["n"].tolist()) == (0, 5, [1, 2])

    class Narrow(Interval):
        pass

    assert data.default_collate([Narrow(4, 5)]).low == 4
    tuples = {(str, bytes): lambda batch, *, collate_fn_map: batch[0]}
    assert data.collate.collate([b"a", b"b"], collate_fn_map=tuples) == b"a"


@pytest.mark.parametrize(("n", "drop_last"), [(10, False), (10, True), (3, False), (9, True)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_processes_get_equal_shares(n, drop_last, shuffle):
    options = {"num_replicas": 4, "shuffle": shuffle, "seed": 3, "drop_last": drop_last}
    shares = [data.DistributedSampler(range(n), rank=rank, **options) for rank in range(4)]
    orders = []
    for epoch in range(2):
        for share in shares:
            share.set_epoch(epoch)
        drawn = [list(share) for share in shares]
        assert {len(part) for part in drawn} == {len(shares[0])}
        together = [i for part in zip(*drawn, strict=True) for i in part]
        orders.append(together)
        if drop_last:
            assert len(together) == n // 4 * 4 == len(set(together))
        else:
            assert set(together) == set(range(n)) and together[n:] == (together[:n] * 4)[: len(together) - n]
    assert (orders[0] == orders[1]) == (not shuffle)


def test_shares_follow_the_environment(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(RuntimeError, match=r"'num_replicas' is not given.*no WORLD_SIZE"):
        data.DistributedSampler(range(4))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert list(data.DistributedSampler(range(4), shuffle=False)) == [1, 3]
    with pytest.raises(ValueError, match="'rank' is 2, expected 0 to 1"):
        data.DistributedSampler(range(4), rank=2)


def test_shares_whose_class_sets_their_length():
    class Fewer(data.DistributedSampler[int]):
        def __init__(self, *args):
            super().__init__(*args, shuffle=False)
            self.num_samples, self.total_size = 1, 2

    assert list(Fewer(range(9), 2, 1)) == [1] and len(Fewer(range(9), 2, 0)) == 1
    assert data.StackDataset[int] and data.ChainDataset[int]


def test_samplers_do_not_say_that_they_keep_their_place():
    """Loaders of others take what has these methods for samplers that go on in the middle of an epoch."""
    ordered = data.SequentialSampler(range(4))
    for sampler in (data.RandomSampler(range(4)), ordered, data.WeightedRandomSampler([0.5, 0.5], 2)):
        assert not hasattr(sampler, "state_dict")
        assert not hasattr(sampler, "load_state_dict")


def test_the_table_says_how_samples_are_joined_and_may_be_changed(monkeypatch):
    table = data.default_collate_fn_map
    assert table is data.collate.default_collate_fn_map
    for kind in (tt.Tensor, np.ndarray, (np.bool_, np.number, np.object_), float, int, str, bytes):
        assert callable(table[kind]), kind
    samples = [tt.ones(2), np.ones(2), np.float32(1), 1.5, 2, True]
    found = [table[kind]([s, s]) for kind, s in zip((*table,)[:5], samples[:5], strict=True)]
    assert [tuple(t.shape) for t in found] == [(2, 2), (2, 2), (2,), (2,), (2,)]
    assert [t.dtype for t in found[2:]] == [tt.float32, tt.float64, tt.int64]
    for sample in samples:
        joined = data.default_collate([sample, sample])
        assert joined.dtype == data.collate.collate([sample, sample]).dtype
    monkeypatch.setitem(table, tt.Tensor, lambda batch, *, collate_fn_map: [t.sum().item() for t in batch])
    assert data.default_collate([{"x": tt.ones(2)}, {"x": tt.ones(3)}]) == {"x": [2, 3]}
    loader = data.DataLoader([tt.ones(2), tt.ones(3)], batch_size=2)
    assert list(loader) == [[2, 3]]
