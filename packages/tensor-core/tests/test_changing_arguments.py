"""Arguments whose conversion runs Python code that changes the arguments themselves."""

import contextlib
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda

ROUNDS = 20  # freed memory has to be handed out again before a stale item shows


class Emptying:
    """A number whose conversion empties the list it stands in."""

    def __init__(self, place):
        self.place = place

    def __index__(self):
        self.place.clear()
        return 1

    def __float__(self):
        self.place.clear()
        return 1.0


def emptying_list(rest):
    place = []
    place[:] = [1, Emptying(place), *rest]
    return place


@pytest.mark.parametrize(
    "call",
    [taeda.zeros, lambda sizes: taeda.ones(2, 3).sum(sizes), lambda sizes: taeda.ones(4).reshape(sizes)],
    ids=["zeros", "sum", "reshape"],
)
def test_list_of_ints_that_shrinks(call):
    for _ in range(ROUNDS):
        place = emptying_list(object() for _ in range(50))
        with contextlib.suppress(TypeError, RuntimeError):
            call(place)
        assert place == []


@pytest.mark.parametrize("use", [taeda.tensor, taeda.as_tensor, lambda data: taeda.ones(5)[data]])
def test_data_that_shrinks(use):
    for _ in range(ROUNDS):
        place = emptying_list(float(i) for i in range(50))
        with pytest.raises(RuntimeError, match="tensor: argument 'data' changed while it was read"):
            use(place)


def test_rows_that_change():
    for _ in range(ROUNDS):
        rows = []
        rows[:] = [[Emptying(rows), 1.0], [2.0, 3.0], [4.0, 5.0]]
        with pytest.raises(RuntimeError, match="changed while it was read"):
            taeda.tensor(rows, dtype=taeda.float32)
        inner = []
        inner[:] = [Emptying(inner), 1.0]
        with pytest.raises(RuntimeError, match="changed while it was read"):
            taeda.tensor([inner, [2.0, 3.0]], dtype=taeda.float32)


def test_row_that_stops_being_a_sequence():
    class Replacing:
        def __float__(self):
            rows[1] = 5.0
            return 1.0

    rows = [[Replacing(), 1.0], [2.0, 3.0]]
    with pytest.raises(RuntimeError, match="changed while it was read"):
        taeda.tensor(rows, dtype=taeda.float32)


@pytest.mark.parametrize("write", [False, True])
def test_tensor_that_shrinks_under_its_own_index(write):
    class Shrinking:
        def __index__(self):
            t.resize_(1)
            return 0

    t = taeda.zeros(1000, 1000)
    with pytest.raises(IndexError):
        if write:
            t[900:, Shrinking() :] = 1.0
        else:
            t[900:, Shrinking() :]
    t = taeda.zeros(100000)
    assert t[Shrinking() : 90000].shape == (1,)


def test_array_interface_that_is_emptied():
    class Size:
        def __index__(self):
            facts.clear()
            return 2

    class Array:
        @property
        def __array_interface__(self):
            return facts

    values = np.arange(4.0)
    for _ in range(ROUNDS):
        facts = dict(values.__array_interface__, shape=(Size(), 2), typestr="<f8"[:], strides=None)
        assert taeda.as_tensor(Array()).tolist() == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"data": (0, False)}, "shape \\(2, 2\\) has no address"),
        ({"strides": (8,)}, "has 2 sizes and 1 strides"),
        ({"strides": ()}, "has 2 sizes and 0 strides"),
        ({"strides": (8,) * 9}, "has 2 sizes and 9 strides"),
        ({"shape": (1,) * 9, "strides": (8,)}, "has 9 sizes and 1 strides"),
    ],
)
def test_array_interfaces_that_contradict_themselves(facts, words):
    class Array:
        values = np.arange(4.0).reshape(2, 2)
        __array_interface__ = values.__array_interface__ | facts

    for read in (taeda.tensor, taeda.as_tensor, taeda.asarray, lambda a: taeda.ones(2, 2) + a):
        with pytest.raises(ValueError, match=words):
            read(Array())


@pytest.mark.parametrize("length", [10**15, 2**62])
def test_sizes_that_no_memory_holds_are_refused_at_once(length):
    x = taeda.ones(4)
    for read in (taeda.ones, x.sum, x.permute, x.split, lambda sizes: taeda.full(sizes, 1.0)):
        with pytest.raises(MemoryError):
            read(range(length))


def test_out_tuple_names_each_result_once():
    out = taeda.zeros(3)
    with pytest.raises(RuntimeError, match="max: argument 'out' names one Tensor for results 0 and 1"):
        taeda.max(taeda.ones(3, 2), 1, out=(out, out))
    assert out.tolist() == [0, 0, 0]


def test_names_that_utf8_lacks():
    with pytest.raises(TypeError, match="unexpected keyword"):
        taeda.ones(3, **{"\ud800": 1})
    with pytest.raises(TypeError, match="no signature fits"):
        taeda.max(taeda.ones(3), **{"\ud800": 1})


def test_frombuffer_gives_the_buffer_back_after_an_error():
    memory = bytearray(8)
    with pytest.raises(TypeError, match="frombuffer: argument 'offset' must be an int"):
        taeda.frombuffer(memory, dtype=taeda.float32, offset="a")
    memory.append(1)  # BufferError while somebody still shows it


class _Items:
    """What has items and nothing else: asked for any of them it gives one, so that only `__len__` ends it."""

    def __init__(self, item, length=None):
        self._item, self._length = item, length

    def __getitem__(self, index):
        return self._item if self._item is not None else _Items(None, 1)

    def __len__(self):
        if self._length is None:
            raise TypeError("no length")
        return self._length


def test_sequences_that_never_end_are_read_as_far_as_they_say():
    one = taeda.ones(1)
    assert taeda.cat(_Items(one, 3)).tolist() == [1.0] * 3
    assert taeda.stack(_Items(one, 3)).shape == (3, 1)
    assert taeda.tensor(_Items(2.0, 3)).tolist() == [2.0] * 3
    assert taeda.tensor(_Items(one, 2)).tolist() == [1.0, 1.0]  # numbers, whatever their dimensions
    assert taeda.arange(4)[_Items(2, 3)].tolist() == [2, 2, 2]
    for read in (taeda.cat, taeda.stack, taeda.tensor, taeda.as_tensor, lambda s: one[s]):
        with pytest.raises(TypeError, match="length"):
            read(_Items(one))


def test_sequences_that_never_reach_a_number_are_refused():
    for read in (taeda.tensor, taeda.as_tensor, lambda s: taeda.ones(2, 2)[s]):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            read(_Items(None, 1))
    assert taeda.tensor(_Items(_Items(taeda.ones(2), 1), 1)).tolist() == [[[1.0, 1.0]]]


def test_endless_sequences_are_refused_on_the_small_stack_of_a_thread():
    found = []

    def read():
        try:
            taeda.tensor(_Items(None, 1))
        except ValueError as error:
            found.append(str(error))

    before = threading.stack_size(128 * 1024)
    thread = threading.Thread(target=read)
    thread.start()
    threading.stack_size(before)
    thread.join()
    assert found == ["tensor: argument 'data' is nested more than 64 deep"]
