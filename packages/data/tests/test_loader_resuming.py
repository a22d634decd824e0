"""The loader: going on in the middle of an epoch."""

import pytest
from loader_basics import Numbers, Stream, lists, seeded

import taeda_data as data
from taeda_registry.slots import tensor as tt

ORDERS = {
    "in order": lambda ds: data.DataLoader(ds, batch_size=3),
    "shuffled": lambda ds: data.DataLoader(ds, batch_size=3, shuffle=True),
    "own generator": lambda ds: data.DataLoader(ds, batch_size=3, shuffle=True, generator=seeded()),
    "single": lambda ds: data.DataLoader(ds, batch_size=None, shuffle=True, collate_fn=tt.tensor),
    "weighted": lambda ds: data.DataLoader(ds, 3, sampler=data.WeightedRandomSampler([1.0] * 10, 10)),
    "batch sampler": lambda ds: data.DataLoader(
        ds, batch_sampler=data.BatchSampler(data.RandomSampler(ds, generator=seeded()), 4, True)
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_going_on_in_the_middle_of_an_epoch(order, at):
    tt.manual_seed(9)
    loader = ORDERS[order](Numbers())
    lists(loader)
    iterator = iter(loader)
    for _ in range(at):
        next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    random = tt.get_rng_state() if hasattr(tt, "get_rng_state") else None
    following = lists(loader)
    resumed = ORDERS[order](Numbers())
    tt.manual_seed(1234)
    resumed.load_state_dict(state)
    assert lists(resumed) == rest
    if random is not None:
        tt.set_rng_state(random)
        assert lists(resumed) == following


def test_between_epochs_a_new_one_begins():
    loader = data.DataLoader(Numbers(), batch_size=3, shuffle=True, generator=seeded())
    lists(loader)
    state = loader.state_dict()
    following = lists(loader)
    resumed = data.DataLoader(Numbers(), batch_size=3, shuffle=True, generator=seeded(99))
    resumed.load_state_dict(state)
    assert lists(resumed) == following


def test_streams_go_on_too():
    loader = data.DataLoader(Stream(), batch_size=2)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    resumed = data.DataLoader(Stream(), batch_size=2)
    resumed.load_state_dict(state)
    assert lists(resumed) == [[2, 3], [4, 5], [6]]


def test_states_that_ask_for_more_than_the_loader_has_are_left_to_their_owners():
    class Counted(Stream):
        def state_dict(self, samples, workers):
            raise AssertionError("only a loader of its own knows the arguments")

        def load_state_dict(self, state):
            raise AssertionError("there is no state to load")

    class Sampled(list):
        state_dict, load_state_dict = Counted.state_dict, Counted.load_state_dict

    def stream(**options):
        return data.DataLoader(Counted(), batch_size=2, **options)

    def sampled():
        return data.DataLoader(Numbers(), batch_size=2, sampler=Sampled(range(7)))

    for made in (stream, sampled):
        loader = made()
        next(iter(loader))
        resumed = made()
        resumed.load_state_dict(loader.state_dict())
        assert lists(resumed) == [[2, 3], [4, 5], [6]]
    assert sorted(lists(stream(num_workers=1))) == [[0, 1], [2, 3], [4, 5], [6]]


def test_a_stream_is_asked_for_its_state_only_when_the_loader_is():
    class Asked(Stream):
        count = 0

        def state_dict(self):
            Asked.count += 1
            return {}

        def load_state_dict(self, state):
            assert state == {}

    loader = data.DataLoader(Asked(), batch_size=2)
    next(iter(loader))
    assert Asked.count == 0
    assert loader.state_dict()["begun"]["order"] == {} and Asked.count == 1


def test_nothing_is_read_again_when_going_on():
    class Watched(Numbers):
        seen = []

        def __getitem__(self, i):
            self.seen.append(i)
            return i

    loader = data.DataLoader(Watched(), batch_size=4)
    next(iter(loader))
    Watched.seen.clear()
    resumed = data.DataLoader(Watched(), batch_size=4)
    resumed.load_state_dict(loader.state_dict())
    lists(resumed)
    assert Watched.seen == [4, 5, 6, 7, 8, 9]


def test_wrong_state_is_refused():
    with pytest.raises(ValueError, match="lacks"):
        data.DataLoader(Numbers()).load_state_dict({"position": 3})
