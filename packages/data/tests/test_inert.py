"""Which data sets certainly draw no random number, and that nothing is different for those that are read so."""

import random

import numpy as np
import pytest

import taeda_data as data
from taeda_data.inert import draws_nothing
from taeda_registry.slots import tensor as tt

HELD = np.arange(12.0)


class Holds:
    def __init__(self, **held):
        self.x, self.y, self.scale = np.arange(12, dtype=np.float32), tt.arange(12), 2.0
        self.__dict__.update(held)

    def __len__(self):
        return 12


class One(Holds):
    def __getitem__(self, i):
        return self.x[i]


class Pair(Holds):
    def __getitem__(self, i):
        return self.x[i] * self.scale, self.y[i]


class Mapping(data.Dataset, Holds):
    def __getitem__(self, i):
        x = self.x[i]
        return {"x": x, "twice": x + x, "y": -self.y[i], "first": (self.x[0:1], i)}


class Calls(Holds):
    def __getitem__(self, i):
        return self.x[i] + random.random()


class CallsOwn(Holds):
    def __getitem__(self, i):
        return self.draw()

    def draw(self):
        return random.random()


class Property(Holds):
    @property
    def drawn(self):
        return random.random()

    def __getitem__(self, i):
        return self.drawn


class Operator(Holds):
    def __add__(self, other):
        return random.random()

    def __getitem__(self, i):
        return self + i


class OperatorByAnotherName(Operator):
    def __getitem__(self, i):
        me = self
        return me + i


class Attribute(Holds):
    def __getattr__(self, name):
        return random.random()

    def __getitem__(self, i):
        return self.anything


class AllAttributes(Holds):
    def __getattribute__(self, name):
        return object.__getattribute__(self, name) if name.startswith("__") else [random.random()]

    def __getitem__(self, i):
        return self.x[0]


class Slots:
    __slots__ = ("x",)

    def __init__(self):
        self.x = np.arange(12.0)

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return self.x[i]


class Global(Holds):
    def __getitem__(self, i):
        return HELD[i]


class Default(Holds):
    def __getitem__(self, i, other=HELD):
        return other[i]


class Closed(Holds):
    def enclose(held):
        def __getitem__(self, i):
            return held[i]

        return __getitem__

    __getitem__ = enclose(HELD)


class Loops(Holds):
    def __getitem__(self, i):
        return [value * 2 for value in self.x]


class ManyAtOnce(One):
    def __getitems__(self, indices):
        return [random.random() for _ in indices]


class DrawsWhenIndexed:
    def __getitem__(self, i):
        return random.random()


def objects():
    return np.array([DrawsWhenIndexed()] * 12, object)


@pytest.mark.parametrize("dataset", [One(), Pair(), Mapping(), One(x=(1, "a", HELD, (HELD,)) * 3)])
def test_parts_of_arrays_are_seen(dataset):
    assert draws_nothing(dataset)()


@pytest.mark.parametrize(
    "kind",
    [
        *(
            Calls,
            CallsOwn,
            Property,
            Operator,
            OperatorByAnotherName,
            Attribute,
            AllAttributes,
            Slots,
            Global,
        ),
        *(Default, Closed, Loops, ManyAtOnce),
    ],
)
def test_whatever_could_draw_is_seen(kind):
    assert not draws_nothing(kind())()


@pytest.mark.parametrize(
    "held",
    [DrawsWhenIndexed(), objects(), [1.0] * 12, (DrawsWhenIndexed(),), type("Own", (np.ndarray,), {})(12)],
)
def test_what_is_held_may_draw(held):
    assert not draws_nothing(One(x=held))()


def test_other_data_sets():
    for dataset in (
        [1, 2],
        data.TensorDataset(tt.arange(3)),
        data.Subset([1, 2], [0]),
        data.IterableDataset(),
        None,
    ):
        assert not draws_nothing(dataset)()
    one = One()
    one.__getitem__ = lambda i: random.random()
    assert not draws_nothing(one)()


def test_a_data_set_that_changes_is_looked_at_again():
    class Drawing:
        def __getitem__(self, i):
            return random.random()

    def read(change):
        random.seed(3)
        dataset, seen = One(), []
        for number, batch in enumerate(data.DataLoader(dataset, batch_size=3)):
            seen.append(batch.tolist())
            if number == change:
                dataset.x = Drawing()
        return seen

    assert read(None) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    first, second = read(0), read(1)
    assert (
        first[0] == [0, 1, 2] and first[2:] == second[2:]
    )  # the streams of batches are what they always are


def in_lists(dataset):
    """Options of a loader that indexes its data set by lists."""
    return {"batch_size": None, "sampler": data.BatchSampler(data.RandomSampler(dataset), 5, False)}


@pytest.mark.parametrize(
    "options",
    [lambda _: {"batch_size": 5, "shuffle": True}, lambda _: {"batch_size": None, "shuffle": True}, in_lists],
    ids=["batches", "samples", "lists"],
)
@pytest.mark.parametrize("kind", [One, Pair, Mapping])
def test_batches_and_the_programs_streams_are_the_same(kind, options, monkeypatch):
    def read():
        random.seed(1), np.random.seed(2), tt.manual_seed(3)
        dataset = kind()
        batches = [str(batch) for batch in data.DataLoader(dataset, **options(dataset))]
        return batches, random.random(), np.random.rand(), tt.rand(1).item()

    quickly = read()
    monkeypatch.setattr("taeda_data.reading.draws_nothing", lambda dataset: lambda: False)
    assert read() == quickly


@pytest.mark.parametrize("dataset", [One(), data.TensorDataset(tt.arange(12))])
def test_a_list_as_an_index_is_one_sample(dataset):
    for collate, wanted in ((data.default_convert, dataset[[2, 3]]), (data.default_collate, None)):
        loader = data.DataLoader(dataset, batch_size=None, sampler=[[2, 3], [5]], collate_fn=collate)
        first = next(iter(loader))
        if wanted is None:
            wanted = collate(dataset[[2, 3]])
        elif isinstance(wanted, tuple):
            wanted, first = wanted[0], first[0]
        assert np.array_equal(np.asarray(first), np.asarray(wanted))


def test_an_error_names_the_sample():
    loader = data.DataLoader(One(x=np.arange(6)), batch_size=4)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1, 2, 3]
    with pytest.raises(IndexError) as caught:
        next(batches)
    assert caught.value.__notes__ == ["while reading sample 6 of One"]
