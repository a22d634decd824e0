"""Long lists of data sets: what workers read is what the lists hold, and costs them no memory."""

import json
import operator
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import loader_sets as sets
import numpy as np
import pytest

import taeda_data as data
from taeda_data import packing

KINDS = {
    "ascii": [f"folder/{i:05}.jpeg" for i in range(300)],
    "text": [f"{i}ü€😀\ud800" * (i % 3) for i in range(300)],
    "bytes": [bytes([i % 256]) * (i % 5) for i in range(300)],
    "int": [(-1) ** i * i * 10**15 for i in range(300)],
    "float": [i / 7 for i in range(298)] + [float("inf"), -0.0],
    "rows": [(f"image{i}", i, i / 3, b"x" * i) for i in range(300)],
}
INDICES = (0, 1, 299, -1, -300, True, np.int64(7), np.uint8(250))
SLICES = (slice(None), slice(5, 20), slice(None, None, -1), slice(290, 400), slice(7, 3), slice(-9, None, 4))
WRONG = (300, -301, 10**30, "1", 1.0, None, (3,), ...)


def adopted(items):
    """A list of the same items that is read from a column, as in a worker."""
    items = list(items)
    packing._adopt(items, packing.column_of(items))
    assert type(items) is packing.PackedList
    return items


def identical(a, b):
    """Equal, of one type, down to the sign of zeros."""
    return type(a) is type(b) and repr(a) == repr(b) and a == b


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [adopted, data.SharedList], ids=["adopted", "shared"])
def test_items_are_those_of_the_list(kind, make):
    plain, packed = KINDS[kind], make(KINDS[kind])
    assert len(packed) == 300
    for index in INDICES:
        assert identical(packed[index], plain[index])
    for chosen in SLICES:
        assert identical(packed[chosen], plain[chosen])
    assert identical(list(packed), plain)
    assert plain[17] in packed and packed.index(plain[50]) == plain.index(plain[50])


@pytest.mark.parametrize("index", WRONG)
@pytest.mark.parametrize("kind", ["ascii", "int", "rows"])
def test_wrong_indices_are_told_as_lists_tell_them(kind, index):
    packed = adopted(KINDS[kind])
    with pytest.raises((IndexError, TypeError)) as expected:
        KINDS[kind][index]
    with pytest.raises(type(expected.value)) as found:
        packed[index]
    assert str(found.value) == str(expected.value)
    with pytest.raises((IndexError, TypeError)):
        data.SharedList(KINDS[kind])[index]


CHANGES = {
    "set": lambda x: operator.setitem(x, 3, "new"),
    "set slice": lambda x: operator.setitem(x, slice(2, 5), ["new"]),
    "delete": lambda x: operator.delitem(x, 0),
    "add": lambda x: operator.iadd(x, ["new"]),
    "multiply": lambda x: operator.imul(x, 2),
    "append": lambda x: x.append("new"),
    "extend": lambda x: x.extend(["new", "newer"]),
    "insert": lambda x: x.insert(0, "new"),
    "pop": lambda x: x.pop(0),
    "remove": lambda x: x.remove(x[2]),
    "reverse": lambda x: x.reverse(),
    "sort": lambda x: x.sort(key=lambda text: text[::-1], reverse=True),
    "clear": lambda x: x.clear(),
    "shuffle": lambda x: random.Random(0).shuffle(x),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_that_changes_is_an_ordinary_one(change):
    plain, packed = list(KINDS["ascii"]), adopted(KINDS["ascii"])
    alias = packed
    for items in (plain, packed):
        CHANGES[change](items)
    assert plain != KINDS["ascii"]
    assert [alias[i] for i in range(len(alias))] == plain == list(alias)


def test_every_method_that_changes_a_list_is_known():
    """Whatever a list has beside what its items are only read by."""
    reading = {"copy", "count", "index"}
    named = {name for name in vars(list) if not name.startswith("_")} - reading
    special = {"__setitem__", "__delitem__", "__iadd__", "__imul__"}
    assert {name for name in named | special if name not in vars(packing.PackedList)} == set()


def test_a_packed_list_is_a_list():
    plain, packed = KINDS["rows"], adopted(KINDS["rows"])
    assert isinstance(packed, list) and packed == plain and plain == packed
    assert repr(packed) == repr(plain)
    assert packed + [1] == [*plain, 1] and type(packed + [1]) is list
    assert type(packed.copy()) is list and sorted(packed) == sorted(plain) and [*packed] == plain
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(packed, protocol))
        assert type(again) is list and again == plain
    assert json.dumps(adopted(KINDS["int"])) == json.dumps(KINDS["int"])
    assert np.array_equal(np.array(adopted(KINDS["float"])), np.array(KINDS["float"]))
    with pytest.raises(TypeError, match="unhashable"):
        hash(packed)


@pytest.mark.parametrize(
    "items",
    [
        [1, 2.0],
        [True, False],
        [10**30, 1],
        [(1, 2), (1,)],
        [(1, [2])],
        [((1,), 2)],
        [()],
        [{"a": 1}],
        [[1]],
        [None],
        [sets.Text("a")],
        [np.float64(1)],
    ],
)
def test_what_could_be_told_apart_is_not_packed(items):
    assert packing.column_of(items * 3) is None
    shared = data.SharedList(items * 3)
    assert identical(list(shared), items * 3)


def test_items_that_are_pickled():
    shared = data.SharedList([{"name": f"a{i}", "box": [i, i + 1]} for i in range(10)])
    assert shared[3] == {"name": "a3", "box": [3, 4]} and shared[-1]["box"] == [9, 10]
    shared[3]["name"] = "other"
    assert shared[3]["name"] == "a3"
    assert [item["name"] for item in shared[::4]] == ["a0", "a4", "a8"]
    assert len(data.SharedList([])) == 0 and list(data.SharedList(iter("abc"))) == ["a", "b", "c"]
    with pytest.raises(IndexError, match="index 10 is out of range for 10 items"):
        shared[10]
    with pytest.raises(IndexError):
        data.SharedList([])[0]
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        data.SharedList([lambda: 0])


@pytest.mark.parametrize("kind", [*KINDS, "pickles", "empty"])
def test_shared_lists_can_be_pickled(kind):
    items = {"pickles": [{"a": i} for i in range(9)], "empty": []}.get(kind) or KINDS.get(kind, [])
    shared = data.SharedList(items)
    for _ in range(2):
        shared = pickle.loads(pickle.dumps(shared))
        assert identical(list(shared), items) and len(shared) == len(items)


@pytest.fixture
def pack_all(monkeypatch):
    """Short lists are packed, too."""
    pytest.importorskip("taeda_multiprocessing", reason="processes need taeda-multiprocessing")
    monkeypatch.setattr(packing, "LEAST", 10)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.usefixtures("pack_all", "nothing_left")
def test_workers_read_what_the_lists_hold(method):
    dataset = sets.Lists(60)
    here = [list(batch) for batch in data.DataLoader(dataset, batch_size=7, collate_fn=sets.keep)]
    for _ in range(2):
        loader = data.DataLoader(
            dataset, batch_size=7, num_workers=2, collate_fn=sets.keep, multiprocessing_context=method
        )
        there = [list(batch) for batch in loader]
        assert [[sample[:-1] for sample in batch] for batch in there] == [
            [sample[:-1] for sample in batch] for batch in here
        ]
        packed = {sample[-1] for batch in there for sample in batch}
        assert packed == (
            {"PackedList PackedList PackedList list"} if method == "fork" else {"list list list list"}
        )
    assert {type(value) for value in vars(dataset).values()} == {list}  # the parent's are as they were
    dataset.names[3] = "another"
    (first, *_) = data.DataLoader(dataset, batch_size=7, num_workers=1, collate_fn=sets.keep)
    assert first[3][0] == "another"


@pytest.mark.usefixtures("pack_all", "nothing_left")
def test_a_list_and_a_subset_as_data_sets():
    names = [f"name {i}" for i in range(50)]
    assert [b for batch in data.DataLoader(names, batch_size=8, num_workers=2) for b in batch] == names
    some = data.Subset(names, [1000 - i for i in range(951, 1000)])
    expected = [names[1000 - i] for i in range(951, 1000)]
    assert [b for batch in data.DataLoader(some, batch_size=8, num_workers=2) for b in batch] == expected


@pytest.mark.usefixtures("pack_all", "nothing_left")
def test_a_worker_may_change_its_list():
    samples = list(data.DataLoader(sets.Growing(40), batch_size=None, num_workers=2))
    assert samples == [f"{i} {'first' if i < 2 else 'changed'}" for i in range(40)]


def test_few_objects_are_left_alone():
    labels = [("cat", "dog")[i % 2] for i in range(packing.LEAST)]
    assert packing.pack(labels) == [] and packing.pack([None] * packing.LEAST) == []
    assert packing.pack([f"{i}" for i in range(packing.LEAST - 1)]) == []
    assert len(packing.pack([f"{i}" for i in range(packing.LEAST)])) == 1


GROWTH = """
import sys
import loader_sets as sets, taeda_data as data
dataset = sets.OwnMemory(int(sys.argv[1]), sys.argv[2] == "shared")
seen = {}
for number, memory in data.DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True):
    if memory:
        seen.setdefault(number, []).append(memory)
print(len(seen), max(values[-1] - values[0] for values in seen.values()))
"""


@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="the system does not tell memory apart"
)
@pytest.mark.parametrize("kind", ["plain", "shared"])
def test_workers_do_not_grow_with_a_long_list(kind):
    pytest.importorskip("taeda_multiprocessing", reason="processes need taeda-multiprocessing")
    command = [sys.executable, "-c", GROWTH, "400000", kind]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    workers, kib = map(int, done.stdout.split())
    assert workers == 2
    assert kib < 6 << 10  # half of the strings take 20 MiB


def test_lists_are_left_alone_where_the_environment_says_so(monkeypatch):
    names = [f"name {i}" for i in range(packing.LEAST)]
    assert [items for items, _ in packing.pack(names)] == [names]
    monkeypatch.setenv("TAEDA_PACK_LISTS", "0")
    assert packing.pack(names) == []


def test_packed_lists_may_outlive_what_knows_them():
    """Each list holds its class: whichever goes last as the interpreter ends, no freed class is asked."""
    source = """
        from taeda_data import packing
        items = [[f"{number} of {n}" for number in range(packing.LEAST)] for n in range(9)]
        packing.settle(packing.pack(items))
        assert type(items[3]) is packing.PackedList and items[3][7] == "7 of 3"
        kept = items.pop()
        kept.append("more")
        print(kept[-1], len(kept) - packing.LEAST)
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in source.splitlines())],
        env={**os.environ, "PYTHONMALLOC": "debug"},  # freed memory is overwritten
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "more 1\n", "")
