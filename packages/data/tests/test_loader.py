"""The loader: batches, orders, going on in the middle of an epoch, errors."""

import io
import itertools
import pickle
import random
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import taeda_data as data
from taeda_registry.slots import tensor as tt


class Numbers(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(7))


def seeded(seed=5):
    return tt.Generator().manual_seed(seed)


def lists(loader):
    return [batch.tolist() for batch in loader]


def test_batches_in_order():
    assert lists(data.DataLoader(Numbers(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    dropped = data.DataLoader(Numbers(5), batch_size=2, drop_last=True)
    assert lists(dropped) == [[0, 1], [2, 3]]
    assert len(dropped) == 2
    assert list(data.DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert lists(data.DataLoader(Numbers(3), batch_sampler=[[2, 0], [1]])) == [[2, 0], [1]]
    assert lists(data.DataLoader(Numbers(9), sampler=[4, 2], batch_size=1)) == [[4], [2]]
    assert list(data.DataLoader(Numbers(4), batch_size=2, collate_fn=sum)) == [1, 5]


@pytest.fixture
def twister():
    """PyTorch's numbers."""
    tt.random.set_engine("mt19937")
    yield
    tt.random.set_engine("philox")


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_take_from_a_twister_what_pytorchs_take(twister, workers):
    """The orders that PyTorch gives after the same seed; Python's and NumPy's generators stay where they are."""
    states = random.getstate(), np.random.get_state()[1].tolist()
    tt.manual_seed(0)
    loader = data.DataLoader(Numbers(), 4, shuffle=True, num_workers=workers)
    orders = [[6, 7, 1, 4, 2, 0, 9, 8, 3, 5], [1, 3, 4, 7, 6, 8, 2, 5, 0, 9], [8, 0, 4, 3, 1, 9, 6, 2, 5, 7]]
    found, between = [], []
    for _ in range(3):
        found.append([index for batch in lists(loader) for index in batch])
        between.append(round(tt.rand(1).item(), 4))
    assert found == orders and between == [0.3074, 0.6323, 0.2939]
    assert states == (random.getstate(), np.random.get_state()[1].tolist())


class Drawn(Numbers):
    def __getitem__(self, i):
        return random.random() + np.random.random() + tt.rand(1).item()


def test_samples_that_workers_draw_beside_a_twister_follow_from_its_seed(twister):
    def samples(workers, seed):
        tt.manual_seed(seed)
        loader = data.DataLoader(Drawn(4), 2, num_workers=workers)
        return [lists(loader), lists(loader)]

    first, second = samples(2, 3)
    assert first != second and [first, second] == samples(2, 3) != samples(2, 4)


@pytest.mark.parametrize("collates", [False, True])
def test_without_workers_samples_are_drawn_from_a_twister_as_the_program_would(twister, collates):
    """After the number that a pass takes for its seed; PyTorch draws so after ``manual_seed(5)``."""

    def draw():
        return tt.rand(1).item()

    def start():
        tt.manual_seed(5)
        random.seed(1)
        np.random.seed(2)
        tt.empty((), dtype=tt.int64).random_()

    start()
    expected = [random.random() + np.random.random() + draw() for _ in range(4)]
    after = random.random(), np.random.random(), draw()
    start()
    tt.manual_seed(5)
    if collates:
        sample = Drawn(4).__getitem__
        loader = data.DataLoader(
            Numbers(4), 1, collate_fn=lambda group: tt.tensor([sample(i) for i in group])
        )
    else:
        loader = data.DataLoader(Drawn(4), 2)
    assert [x for batch in loader for x in batch.tolist()] == pytest.approx(expected, rel=1e-6)
    assert (random.random(), np.random.random(), draw()) == after
    tt.manual_seed(5)
    (batch,) = data.DataLoader(range(1), collate_fn=lambda _: draw(), shuffle=True)
    assert round(batch, 4) == 0.9201


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_says_its_place_and_skips_groups_of_indices(workers):
    """As programs do that save their place themselves."""
    loader = data.DataLoader(Numbers(), 2, num_workers=workers)
    batches = iter(loader)
    for _ in range(2):
        next(batches._sampler_iter)
    assert batches._num_yielded == 0
    assert [batch.tolist() for batch in batches] == [[4, 5], [6, 7], [8, 9]]
    assert batches._num_yielded == 3 and batches._dataset is loader.dataset
    with pytest.raises(AttributeError, match="no attribute '_nothing'"):
        batches._nothing  # noqa: B018


def test_streams():
    assert lists(data.DataLoader(Stream(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(data.DataLoader(Stream(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(data.DataLoader(Stream(), batch_size=None)) == list(range(7))


def test_shuffled_epochs_differ_and_repeat_with_the_seed():
    loader = data.DataLoader(Numbers(20), batch_size=4, shuffle=True, generator=seeded())
    one, two = lists(loader), lists(loader)
    assert one != two
    assert sorted(i for batch in one for i in batch) == list(range(20))
    again = data.DataLoader(Numbers(20), batch_size=4, shuffle=True, generator=seeded())
    assert [lists(again), lists(again)] == [one, two]


def test_default_generator_is_seeded_as_a_whole():
    loader = data.DataLoader(Numbers(20), batch_size=4, shuffle=True)
    tt.manual_seed(1)
    one = lists(loader)
    tt.manual_seed(1)
    assert lists(loader) == one


def test_tensors_are_gathered_as_samples_would_be_joined():
    x, y = tt.arange(24).reshape(8, 3), tt.arange(8)
    whole = data.TensorDataset(x, y)

    class Slow(data.TensorDataset):
        pass

    for quick, slow in [
        (whole, Slow(x, y)),
        (data.Subset(whole, [5, 1, 7, 0, 2]), data.Subset(Slow(x, y), [5, 1, 7, 0, 2])),
    ]:
        loaders = [data.DataLoader(d, 3, shuffle=True, generator=seeded()) for d in (quick, slow)]
        for a, b in zip(*loaders, strict=True):
            assert isinstance(a, list)
            assert isinstance(b, list)
            assert [t.tolist() for t in a] == [t.tolist() for t in b]
    backwards = next(iter(data.DataLoader(whole, batch_sampler=[[-1, 0]])))
    assert backwards[1].tolist() == [7, 0]


def test_getitems_reads_a_batch_at_once():
    class Many(Numbers):
        def __getitems__(self, indices):
            return [100 + i for i in indices]

    assert lists(data.DataLoader(Many(3), batch_size=2)) == [[100, 101], [102]]

    class Columns(Numbers):
        def __getitems__(self, indices):
            return tt.tensor(indices), -tt.tensor(indices)

    with pytest.raises(ValueError, match=r"Columns\.__getitems__ returned 2 samples, expected 3"):
        next(iter(data.DataLoader(Columns(3), batch_size=3)))
    for workers in (0, 1):
        x, y = next(iter(data.DataLoader(Columns(3), 3, collate_fn=lambda pair: pair, num_workers=workers)))
        assert (x.tolist(), y.tolist()) == ([0, 1, 2], [0, -1, -2])


def test_subclasses_may_set_what_kind_of_data_set_is_read():
    class Own(data.DataLoader):
        def __init__(self, dataset):
            self._dataset_kind = 0
            super().__init__(dataset, batch_size=2)

    assert lists(Own(Numbers(3))) == lists(data.DataLoader(Numbers(3), batch_size=2))
    assert data.DataLoader(Numbers(3))._dataset_kind == 0


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


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_that_has_ended_is_not_asked_again(workers):
    class Once:
        def __init__(self):
            self.left = [*range(5)]

        def __next__(self):
            if not self.left:
                raise AssertionError("asked again")
            if (found := self.left.pop(0)) == 3:
                self.left.clear()
                raise StopIteration
            return found

        def __iter__(self):
            return self

    class Ends(data.IterableDataset):
        def __iter__(self):
            return Once()

    assert lists(data.DataLoader(Ends(), batch_size=2, num_workers=workers)) == [[0, 1], [2]]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("size", "expected"), [(2, [[0, 1], [2, 3], [4]]), (None, [0, 1, 2, 3, 4])])
def test_iterables_that_begin_anew_are_begun_once(workers, size, expected):
    class Anew(data.IterableDataset):
        def __iter__(self):
            self.next, self.begun = 0, getattr(self, "begun", 0) + 1
            return self

        def __next__(self):
            assert self.begun == 1
            if self.next == 5:
                raise StopIteration
            self.next += 1
            return self.next - 1

    loader = data.DataLoader(Anew(), batch_size=size, num_workers=workers)
    assert [batch if size is None else batch.tolist() for batch in loader] == expected


@pytest.mark.parametrize("workers", [0, 1])
def test_samplers_that_begin_anew_are_begun_once(workers):
    class Anew(data.Sampler):
        begun = 0

        def __iter__(self):
            self.left, self.begun = [[3, 1], [2]], self.begun + 1
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration
            return self.left.pop(0)

    sampler = Anew()
    loader = data.DataLoader(Numbers(), batch_sampler=sampler, num_workers=workers)
    assert lists(loader) == [[3, 1], [2]] and sampler.begun == 1


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_shows_another_data_set_between_passes(workers):
    class Shown(data.DataLoader):
        beginning = True  # while it is made and while a pass begins, as libraries for recommendations do

        def __getattribute__(self, name):
            hides = name == "dataset" and not super().__getattribute__("beginning")
            return "what programs see" if hides else super().__getattribute__(name)

        def __iter__(self):
            self.beginning = True
            begun = super().__iter__()
            self.beginning = False
            return begun

    loader = Shown(Numbers(), batch_size=5, num_workers=workers)
    loader.beginning = False
    for _ in range(2):
        assert lists(loader) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]] and loader.dataset == "what programs see"


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


class Noisy(Numbers):
    def __getitem__(self, i):
        return i, tt.randn(1, generator=data.worker_rng()).item()


def noise(batch_size, shuffle):
    tt.manual_seed(3)
    out = {}
    for index, value in data.DataLoader(Noisy(), batch_size=batch_size, shuffle=shuffle):
        out.update(zip(index.tolist(), value.tolist(), strict=True))
    return out


def test_randomness_of_a_sample_follows_from_seed_and_index():
    assert noise(2, True) == noise(5, False)
    assert len(set(noise(2, False).values())) == 10
    with pytest.raises(RuntimeError, match="worker_rng"):
        data.worker_rng()


class Two(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.a, self.b = a, b


def test_a_loader_within_a_sample_leaves_the_sample_its_randomness():
    class Outer(data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            before = tt.rand(1, generator=data.worker_rng())
            inner = list(data.DataLoader(Inner(), batch_size=None))
            after = tt.rand(1, generator=data.worker_rng())
            return before.item() == after.item() and before.item() not in inner

    class Inner(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return tt.rand(1, generator=data.worker_rng()).item()

    assert list(data.DataLoader(Outer(), batch_size=3, collate_fn=list)) == [[True] * 3]
    with pytest.raises(RuntimeError, match="worker_rng"):
        data.worker_rng()


def test_errors_keep_type_and_attributes_and_name_the_sample():
    class Broken(Numbers):
        def __getitem__(self, i):
            if i == 7:
                raise Two("p", 7)
            return i

    with pytest.raises(Two) as caught:
        lists(data.DataLoader(Broken(), batch_size=4))
    assert (caught.value.a, caught.value.b) == ("p", 7)
    assert "sample 7 of Broken" in caught.value.__notes__[0]


def test_errors_of_joining_name_the_samples():
    class Ragged(Numbers):
        def __getitem__(self, i):
            return tt.zeros(i)

    with pytest.raises(Exception) as caught:
        list(data.DataLoader(Ragged(), batch_size=2))
    assert "joining the samples [0, 1] of Ragged" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"num_workers": -1}),
        (ValueError, {"num_workers": 1, "prefetch_factor": 0}),
        (ValueError, {"worker_type": "fibre"}),
        (ValueError, {"multiprocessing_context": "fork"}),
        (TypeError, {"num_workers": 1, "multiprocessing_context": 3}),
        (ValueError, {"shuffle": True, "sampler": [1]}),
        (ValueError, {"batch_sampler": [[1]], "batch_size": 2}),
        (ValueError, {"batch_sampler": [[1]], "drop_last": True}),
        (ValueError, {"batch_size": None, "drop_last": True}),
        (ValueError, {"batch_size": 0}),
        (ValueError, {"timeout": -1}),
        (ValueError, {"prefetch_factor": 2}),
        (ValueError, {"persistent_workers": True}),
    ],
)
def test_wrong_options(error, options):
    with pytest.raises(error):
        data.DataLoader(Numbers(), **options)


def test_streams_have_their_own_order():
    with pytest.raises(ValueError, match="own order"):
        data.DataLoader(Stream(), shuffle=True)


def test_pinning_that_is_impossible_is_said():
    plain = [[0, 1], [2, 3]]
    loader = data.DataLoader(Numbers(4), batch_size=2, pin_memory=True)
    with pytest.warns(UserWarning, match="DataLoader: argument 'pin_memory' has no effect: no accelerator"):
        assert lists(loader) == plain
    loader = data.DataLoader(Numbers(4), batch_size=2, pin_memory_device="cpu")
    with pytest.warns(UserWarning, match="'pin_memory_device' has no effect without pin_memory=True"):
        assert lists(loader) == plain
    loader = data.DataLoader(Numbers(4), pin_memory=True, pin_memory_device="cpu")
    with pytest.raises(NotImplementedError, match="device 'cpu' has no pinned memory"):
        iter(loader)
    loader = data.DataLoader(Numbers(4), pin_memory=True, pin_memory_device="nodev")
    with pytest.raises(RuntimeError, match="nodev"):
        iter(loader)


def test_an_accelerator_without_pinned_memory_is_said(monkeypatch):
    monkeypatch.setattr(tt.accelerator, "current_accelerator", lambda: tt.device("cpu"))
    with pytest.warns(UserWarning, match="has no effect: pin_memory: device 'cpu' has no pinned memory"):
        assert lists(data.DataLoader(Numbers(2), batch_size=2, pin_memory=True)) == [[0, 1]]


@pytest.mark.parametrize(("name", "value"), [("shuffle", "yes"), ("collate_fn", 3)])
def test_options_of_a_wrong_type(name, value):
    with pytest.raises(TypeError, match=f"DataLoader: argument '{name}'"):
        data.DataLoader(Numbers(), **{name: value})


def test_the_loader_keeps_no_batch():
    batches = iter(data.DataLoader(Numbers(), batch_size=2))
    batch = next(batches)
    alive = weakref.ref(batch)
    del batch
    assert alive() is None
    assert next(batches).tolist() == [2, 3]


def test_mappings_of_different_keys():
    with pytest.raises(KeyError, match=r"default_collate: sample 1 of the batch lacks the keys \['a'\]"):
        data.default_collate([{"a": 1}, {"b": 2}])


def test_names_that_programs_import():
    from taeda_data.dataloader import DataLoader, default_collate

    assert DataLoader is data.DataLoader and default_collate is data.default_collate


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("options", "total"),
    [({"batch_size": 4}, 10), ({"batch_size": 4, "drop_last": True}, 8), ({"batch_size": None}, 10)],
)
def test_progress_is_shown_to_its_end(options, total, monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is tqdm's")
    monkeypatch.setattr("sys.stderr", Terminal())
    loader = data.DataLoader(Numbers(10), progress=True, **options)
    assert lists(loader) if options["batch_size"] else list(loader) == list(range(10))
    shown = sys.stderr.getvalue()
    assert f"{total}/{total}" in shown and "sample/s" in shown


def test_logs_are_not_filled_with_bars(monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is tqdm's")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert len(list(data.DataLoader(Numbers(10), progress=True))) == 10
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("left_over", [False, True])
@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64])
def test_numpys_global_generator_goes_on_between_batches(kind, left_over):
    """Also where a normal number is left over from a pair, and with a bit generator that the program has chosen."""
    before = np.random.get_bit_generator()

    class Noise(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return np.random.normal()

    def numbers(read):
        np.random.set_bit_generator(kind(3))
        drawn = [np.random.normal() for _ in range(1 + left_over)]
        batches = iter(data.DataLoader(Noise(), batch_size=2))
        next(batches)  # draws the epoch's number
        for _ in range(2):
            drawn.append(np.random.normal())
            if read:
                next(batches)
        return [*drawn, np.random.normal(), np.random.randint(1 << 30)]

    try:
        assert numbers(read=True) == numbers(read=False)
    finally:
        np.random.set_bit_generator(before)


@pytest.mark.parametrize("name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset"])
def test_what_a_loader_was_made_of_stays(name):
    loader = data.DataLoader(range(4), batch_size=2)
    with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
        setattr(loader, name, None)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    again = pickle.loads(pickle.dumps(loader))
    assert again.batch_size == 2
    with pytest.raises(ValueError, match=name):
        setattr(again, name, None)


def test_a_subclass_may_replace_what_a_loader_was_made_of():
    """As programs do whose batches never end, past the loader's own check."""

    class Repeated:
        def __init__(self, batches):
            self.batches = batches

        def __iter__(self):
            while True:
                yield from self.batches

    class Endless(data.DataLoader):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))

    batches = iter(Endless(range(4), batch_size=2))
    assert [next(batches).tolist() for _ in range(5)] == [[0, 1], [2, 3], [0, 1], [2, 3], [0, 1]]


def test_too_many_workers_are_warned_of(recwarn):
    data.DataLoader(range(4)).check_worker_number_rationality()
    assert not recwarn
    with pytest.warns(UserWarning, match="100000 worker") as said:
        loader = data.DataLoader(range(4), num_workers=100000)
    assert [w.filename for w in said] == [__file__]
    with pytest.warns(UserWarning, match="100000 worker") as said:
        loader.check_worker_number_rationality()
    assert [w.filename for w in said] == [__file__]
    data.DataLoader(range(4), num_workers=100000, worker_type="thread")


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_to_read(workers):
    """No samples, no indices, no full batch and no batches all give nothing, and end."""
    for options in (
        {"dataset": []},
        {"dataset": [1, 2], "sampler": []},
        {"dataset": [1, 2], "batch_size": 3, "drop_last": True},
        {"dataset": [1, 2], "batch_sampler": []},
    ):
        loader = data.DataLoader(**options, num_workers=workers)
        assert len(loader) == 0
        assert list(loader) == []


def test_a_loader_may_say_itself_what_is_read():
    class Slices(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, indices):
            return [number * 10 for number in indices]

    class ByBatch(data.DataLoader):
        reading = False

        def __iter__(self):
            self.reading, self.collate_fn = True, list
            return super().__iter__()

        @property
        def _auto_collation(self):
            return not self.reading and super()._auto_collation

        @property
        def _index_sampler(self):
            return self.batch_sampler

    assert list(ByBatch(Slices(), batch_size=2)) == [[0, 10], [20, 30], [40]]


@pytest.mark.parametrize("workers", [0, 2])
def test_strings_that_are_items_of_samples_make_a_tuple(workers):
    samples = [(i, str(i), {"name": str(i)}) for i in range(4)]
    batches = [batch[1:] for batch in data.DataLoader(samples, batch_size=2, num_workers=workers)]
    assert batches == [[("0", "1"), {"name": ["0", "1"]}], [("2", "3"), {"name": ["2", "3"]}]]


def test_length_without_batches_is_that_of_the_sampler():
    assert len(data.DataLoader(range(7), batch_size=None, sampler=[0, 0, 1])) == 3
    assert len(data.DataLoader(range(7), batch_size=None)) == 7


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_has_an_order_without_indices(workers):
    loader = data.DataLoader(Stream(), batch_size=3, sampler=None, num_workers=workers)
    assert next(iter(loader.sampler)) is None and loader.batch_sampler.sampler is loader.sampler
    assert next(iter(loader.batch_sampler)) == [None] * 3
    assert sorted(i for batch in loader for i in batch.tolist()) == sorted([*range(7)] * max(1, workers))
    assert data.DataLoader(Stream(), batch_size=None).batch_sampler is None
    with pytest.raises(TypeError):
        len(loader)


class OwnPass(data.dataloader._BaseDataLoaderIter):
    """Gets its batches itself, as loaders do that keep what they have read."""

    def __init__(self, loader):
        super().__init__(loader)
        made = data.dataloader._DatasetKind.create_fetcher
        self.fetcher = made(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self):
        return self.fetcher.fetch(self._next_index())


class OwnConstructor(data.DataLoader):
    """Sets what it needs in place of the loader's constructor."""

    def __init__(self, dataset, batch_size=None, iterable=False, drop_last=False):
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, None
        self.num_workers, self.prefetch_factor, self.timeout, self.worker_init_fn = 0, None, 0, None
        self.pin_memory, self.pin_memory_device, self.multiprocessing_context = False, "", None
        self._dataset_kind = (
            data.dataloader._DatasetKind.Iterable if iterable else data.dataloader._DatasetKind.Map
        )
        self.sampler = (
            data.dataloader._InfiniteConstantSampler() if iterable else data.SequentialSampler(dataset)
        )
        self.batch_sampler = (
            None if batch_size is None else data.BatchSampler(self.sampler, batch_size, drop_last)
        )
        self.collate_fn = data.default_collate if self._auto_collation else data.dataloader.default_convert
        self.persistent_workers, self._DataLoader__initialized, self._iterator = False, True, None


class OwnPasses(OwnConstructor):
    def _get_iterator(self):
        self._iterator = OwnPass(self)
        return self._iterator


@pytest.mark.parametrize("kind", [OwnConstructor, OwnPasses])
def test_loaders_with_a_constructor_of_their_own(kind):
    assert lists(kind(Numbers(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(kind(Numbers(5), 2, drop_last=True)) == [[0, 1], [2, 3]] and len(kind(Numbers(5), 2)) == 3
    assert list(kind(Numbers(3))) == [0, 1, 2]
    assert lists(kind(Stream(), 3, iterable=True)) == [[0, 1, 2], [3, 4, 5], [6]]
    with pytest.raises(ValueError, match="batch_size"):
        kind(Numbers(5), 2).batch_size = 3


class Replayed(data.DataLoader):
    """Wraps another loader, of which it keeps an iterator that is no loader's."""

    def __init__(self, origin):
        self.origin = origin
        self._iterator = iter(origin)

    def __iter__(self):
        self._iterator, begun = itertools.tee(self._iterator)
        return begun


def test_subclasses_keep_iterators_of_any_kind():
    loader = Replayed(data.DataLoader(Numbers(3)))
    assert [batch.tolist() for batch in loader] == [[0], [1], [2]] == [batch.tolist() for batch in loader]


def test_passes_that_get_their_batches_themselves_count_and_begin_anew():
    loader = OwnPasses(Numbers(5), 2)
    begun = iter(loader)
    assert loader._iterator is begun and begun._num_yielded == 0
    assert next(begun).tolist() == [0, 1] and begun._num_yielded == 1
    begun._reset(loader)
    assert begun._num_yielded == 0 and lists(begun) == [[0, 1], [2, 3], [4]]
    assert len(begun) == 3
    loader._iterator = None
    assert loader._iterator is None
    gone = weakref.ref(loader)
    del loader
    assert gone() is None  # the pass does not keep it


def test_workers_of_a_program_are_told_where_it_says(monkeypatch):
    from taeda_data._utils import worker

    assert data.get_worker_info() is None
    told = worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=None)
    monkeypatch.setattr(worker, "_worker_info", told)
    assert data.get_worker_info() is told


def test_what_workers_gave_is_handed_on_until_the_end():
    import queue
    import threading

    from taeda_data._utils.pin_memory import _pin_memory_loop

    given, taken, done = queue.Queue(), queue.Queue(), threading.Event()

    class Error:
        def reraise(self): ...

    error = Error()
    for pair in ((0, [3]), (1, error)):
        given.put(pair)
    thread = threading.Thread(target=_pin_memory_loop, args=(given, taken, 0, done), daemon=True)
    thread.start()
    assert [taken.get(timeout=20) for _ in range(2)] == [(0, [3]), (1, error)]
    done.set()
    given.put((2, []))
    thread.join(timeout=20)
    assert not thread.is_alive()


class _Slow(data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        time.sleep(0.001)  # lets other threads in
        return i


@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_share_a_pass_get_each_batch_once(workers):
    batches = iter(data.DataLoader(_Slow(), batch_size=2, num_workers=workers))
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: [b.tolist() for b in batches], range(4)))
    assert sorted(itertools.chain(*taken)) == [[i, i + 1] for i in range(0, 40, 2)]


@pytest.mark.parametrize("yes", [1, np.True_])
def test_shuffle_said_by_what_is_no_bool(yes):
    found = lists(data.DataLoader(Numbers(50), batch_size=50, shuffle=yes, generator=seeded()))
    assert found != [list(range(50))]
    assert [sorted(batch) for batch in found] == [list(range(50))]
    assert lists(data.DataLoader(Numbers(5), batch_size=5, shuffle=0)) == [list(range(5))]
    with pytest.raises(TypeError, match="'shuffle' must be a bool or None, found 'False'"):
        data.DataLoader(Numbers(5), shuffle="False")
