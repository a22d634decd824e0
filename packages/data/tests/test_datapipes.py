"""Pipes: steps by name, one reader at a time, shares of workers, orders."""

import functools
import pickle

import pytest

import taeda_data as data
from taeda_data.datapipes import iter as pipes
from taeda_data.datapipes import map as mapped


def square(x):
    return x * x


def even(x):
    return x % 2 == 0


def numbers(count):
    return pipes.IterableWrapper(range(count))


def test_steps_are_methods():
    assert list(numbers(8).map(square).filter(even).batch(3)) == [[0, 4, 16], [36]]
    assert list(numbers(8).batch(3, drop_last=True).unbatch()) == list(range(6))
    assert len(numbers(8).batch(3)) == 3
    assert list(numbers(3).zip(pipes.IterableWrapper("abc"))) == [(0, "a"), (1, "b"), (2, "c")]
    assert list(numbers(3).mux(pipes.IterableWrapper([9, 8]))) == [0, 9, 1, 8]
    assert list(numbers(2).concat(numbers(1))) == [0, 1, 0]
    words = pipes.IterableWrapper(["apple", "bat", "ant"])
    assert list(words.groupby(lambda word: word[0], keep_key=True)) == [
        ("a", ["apple", "ant"]),
        ("b", ["bat"]),
    ]
    assert "batch" in dir(words)
    assert repr(words) == "IterableWrapperIterDataPipe"


def test_columns():
    rows = pipes.IterableWrapper([(1, 2, 3)])
    assert list(rows.map(lambda a, b: a + b, input_col=[0, 2])) == [(4, 2)]
    assert list(rows.map(square, input_col=1, output_col=-1)) == [(1, 2, 3, 4)]
    assert list(pipes.IterableWrapper([{"a": 3}]).map(square, input_col="a", output_col="b")) == [
        {"a": 3, "b": 9}
    ]
    with pytest.raises(ValueError, match="output_col"):
        rows.map(square, output_col=1)


def test_forks_and_classes():
    one, other = numbers(4).fork(2)
    assert (list(one), list(other), list(one)) == ([0, 1, 2, 3],) * 3
    small, large = numbers(6).demux(2, lambda x: int(x > 3))
    assert (list(small), list(large)) == ([0, 1, 2, 3], [4, 5])
    slow, fast = numbers(10).fork(2, buffer_size=3)
    iter(slow)
    with pytest.raises(BufferError, match="buffer size 3"):
        list(fast)
    with pytest.raises(ValueError, match="between 0 and 1"):
        list(numbers(4).demux(2, lambda x: x)[0])


def test_only_the_last_reader_reads():
    pipe = numbers(3)
    first = iter(pipe)
    assert next(first) == 0
    assert next(iter(pipe)) == 0
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)


def test_orders():
    pipe = numbers(50).shuffle()
    assert sorted(pipe) == list(range(50))
    assert list(pipe.set_seed(3)) == list(pipe.set_seed(3)) != list(pipe.set_seed(4))
    assert list(pipe.set_shuffle(False)) == list(range(50))
    assert sorted(numbers(50).shuffle(buffer_size=4)) == list(range(50))


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_reads_each_item_once(workers):
    pipe = numbers(16).shuffle().sharding_filter().map(square)
    for shuffle in (None, True, False):
        loader = data.DataLoader(pipe, batch_size=4, num_workers=workers, shuffle=shuffle)
        found = [value for batch in loader for value in batch.tolist()]
        assert sorted(found) == [x * x for x in range(16)]
        if shuffle is False and workers == 0:
            assert found == sorted(found)
    with pytest.warns(UserWarning, match="Adding one at the end"):
        data.DataLoader(numbers(4), shuffle=True)


def test_pipes_by_keys():
    pipe = mapped.SequenceWrapper(range(7))
    assert list(pipe.map(square).batch(3)) == [[0, 1, 4], [9, 16, 25], [36]]
    assert pipe.concat(pipe)[8] == 1
    assert sorted(pipe.shuffle()) == list(range(7))
    with pytest.raises(IndexError):
        pipe.batch(3)[3]


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name)
    listed = pipes.FileLister(str(tmp_path), masks="*.txt")
    assert [content for _path, content in listed.open_files().read_from_stream()] == ["a.txt", "b.txt"]


def test_new_steps():
    @data.functional_datapipe("plus_for_test")
    class Plus(data.IterDataPipe):
        def __init__(self, source, number):
            self.source, self.number = source, number

        def __iter__(self):
            for item in self.source:
                yield item + self.number

    assert list(numbers(3).plus_for_test(2)) == [2, 3, 4]
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("plus_for_test")(Plus)
    with pytest.raises(TypeError):
        data.functional_datapipe("other")(int)
    with pytest.raises(AttributeError, match="nothing"):
        numbers(3).nothing  # noqa: B018
    assert list(pickle.loads(pickle.dumps(numbers(4).map(square)))) == [0, 1, 4, 9]


def test_parts_of_the_loader_that_other_loaders_use():
    from itertools import islice

    from taeda_data._utils import HAS_NUMPY
    from taeda_data._utils.worker import ManagerWatchdog, _IterableDatasetStopIteration, _ResumeIteration
    from taeda_data.dataloader import _InfiniteConstantSampler, _sharding_worker_init_fn
    from taeda_data.datapipes.datapipe import (
        _IterDataPipeSerializationWrapper,
        _MapDataPipeSerializationWrapper,
    )

    assert HAS_NUMPY and ManagerWatchdog().is_alive()
    assert list(islice(_InfiniteConstantSampler(), 3)) == [None] * 3
    assert _IterableDatasetStopIteration(2).worker_id == 2 and _ResumeIteration().seed is None
    wrapped = pickle.loads(pickle.dumps(_IterDataPipeSerializationWrapper(pipes.IterableWrapper(range(4)))))
    assert list(wrapped) == list(wrapped) == [0, 1, 2, 3] and len(wrapped) == 4
    assert _MapDataPipeSerializationWrapper(mapped.SequenceWrapper([5, 6]))[1] == 6
    with pytest.raises(AssertionError, match="worker"):
        _sharding_worker_init_fn(None, 1, 0, 0)
    loader = data.DataLoader(
        numbers(8).sharding_filter(), batch_size=None, num_workers=2,
        worker_init_fn=functools.partial(_sharding_worker_init_fn, None, 2, 1),
    )  # fmt: skip
    assert sorted(loader) == [1, 3, 5, 7]


def test_pipes_say_what_they_give():
    from typing import Generic, TypeVar

    item = TypeVar("item")

    class Numbers(data.IterDataPipe[int]):
        def __iter__(self):
            yield from range(3)

    class Any(data.IterDataPipe[item], Generic[item]):
        def __iter__(self):
            yield "a"

    assert list(Numbers().map(lambda x: x + 1)) == [1, 2, 3]
    assert list(Any[str]()) == ["a"] and data.MapDataPipe[int]


def remainder(number):
    return number % 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda source: source.fork(2)[1], [0, 1, 2, 3]),
        (lambda source: source.demux(2, remainder)[1], [1, 3]),
    ],
    ids=["fork", "demux"],
)
def test_divided_pipes_are_pickled_before_and_while_they_are_read(make, expected):
    pipe = make(pipes.IterableWrapper(range(4)))
    assert list(pickle.loads(pickle.dumps(pipe))) == expected
    assert next(iter(pipe)) == expected[0]
    assert list(pickle.loads(pickle.dumps(pipe))) == expected


def test_a_pipe_may_be_its_own_iterator():
    class Numbers(data.IterDataPipe):
        def __init__(self):
            self.numbers = iter(range(3))

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.numbers)

        def reset(self):
            self.numbers = iter(range(3))

    pipe = Numbers()
    assert list(pipe) == list(pipe) == [0, 1, 2]
    first = iter(pipe)
    assert next(first) == 0 and next(pipe) == 1
    assert next(iter(pipe)) == 0
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
