"""The loader: classes of programs that are loaders or passes, and the parts that they use."""

import itertools
import pickle
import weakref

import pytest
from loader_basics import Numbers, Stream, lists

import taeda_data as data


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


def test_subclasses_may_set_what_kind_of_data_set_is_read():
    class Own(data.DataLoader):
        def __init__(self, dataset):
            self._dataset_kind = 0
            super().__init__(dataset, batch_size=2)

    assert lists(Own(Numbers(3))) == lists(data.DataLoader(Numbers(3), batch_size=2))
    assert data.DataLoader(Numbers(3))._dataset_kind == 0


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
