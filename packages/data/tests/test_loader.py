"""The loader: batches, orders, options, errors."""

import io
import itertools
import pickle
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from loader_basics import Numbers, Stream, lists, seeded

import taeda_data as data
from taeda_registry.slots import tensor as tt


def test_batches_in_order():
    assert lists(data.DataLoader(Numbers(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    dropped = data.DataLoader(Numbers(5), batch_size=2, drop_last=True)
    assert lists(dropped) == [[0, 1], [2, 3]]
    assert len(dropped) == 2
    assert list(data.DataLoader(Numbers(3), batch_size=None)) == [0, 1, 2]
    assert lists(data.DataLoader(Numbers(3), batch_sampler=[[2, 0], [1]])) == [[2, 0], [1]]
    assert lists(data.DataLoader(Numbers(9), sampler=[4, 2], batch_size=1)) == [[4], [2]]
    assert list(data.DataLoader(Numbers(4), batch_size=2, collate_fn=sum)) == [1, 5]


def test_streams():
    assert lists(data.DataLoader(Stream(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(data.DataLoader(Stream(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(data.DataLoader(Stream(), batch_size=None)) == list(range(7))


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


class Two(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.a, self.b = a, b


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


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_name_of_a_start_method_becomes_a_context(method):
    loader = data.DataLoader(Numbers(4), num_workers=1, multiprocessing_context=method)
    assert loader.multiprocessing_context.get_start_method() == method
    again = pickle.loads(pickle.dumps(loader))
    assert again.multiprocessing_context.get_start_method() == method and lists(again) == [[0], [1], [2], [3]]
    loader.multiprocessing_context = None
    assert loader.multiprocessing_context is None
    with pytest.raises(
        ValueError, match="multiprocessing_context option should specify a valid start method"
    ):
        loader.multiprocessing_context = "boat"
    with pytest.raises(ValueError, match="multiprocessing_context needs num_workers > 0"):
        data.DataLoader(Numbers(4)).multiprocessing_context = method


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
