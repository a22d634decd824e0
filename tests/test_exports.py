"""Memory that others hold: what NumPy, buffers and DLPack were given stays theirs, whatever its tensor does.

TAEDA_TEST_SEED chooses other random programs; a failure prints seed and steps.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import taeda as t

SEED = int(os.environ.get("TAEDA_TEST_SEED", "2019"))
PROGRAMS, STEPS = 150, 40


def unversioned(x: t.Tensor) -> np.ndarray:
    return t.from_dlpack(x.__dlpack__()).numpy()


#: Ways out: each gives an array over the tensor's memory.
WAYS: dict[str, Callable[[t.Tensor], np.ndarray]] = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "array": lambda x: x.__array__(),
    "memoryview": lambda x: np.asarray(memoryview(x)),
    "from_dlpack": np.from_dlpack,
    "capsule": unversioned,
    "versioned capsule": lambda x: t.from_dlpack(x.__dlpack__(max_version=(1, 0))).numpy(),
    "round trip": lambda x: t.from_numpy(x.numpy()).numpy(),
    "data": lambda x: x.data.numpy(),
}


def fresh(size: int) -> t.Tensor:
    return t.arange(float(size))


CHANGES: dict[str, Callable[[t.Tensor], Any]] = {
    "set_": lambda x: x.set_(t.zeros(500)),
    "data": lambda x: setattr(x, "data", t.zeros(500)),
    "out of a view": lambda x: t.add(t.zeros(500), 1, out=t.empty(0).set_(x)) if x.numel() == 500 else None,
}
GROWTHS: dict[str, Callable[[t.Tensor], Any]] = {
    "resize_": lambda x: x.resize_(50_000),
    "resize_as_": lambda x: x.resize_as_(t.zeros(50_000)),
    "out": lambda x: t.add(t.zeros(50_000), 1, out=x),
    "out of a composite": lambda x: t.matmul(t.ones(50_000, 1), t.ones(1), out=x),
}


@pytest.mark.parametrize("size", [5, 5000], ids=["inside the object", "allocated"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_exported_lives_on(way, change, size):
    x = fresh(size)
    array = WAYS[way](x)
    CHANGES[change](x)
    del x
    gc.collect()
    filler = [t.full((size,), -1.0) for _ in range(20)]  # takes memory that was freed
    array += 1
    assert np.array_equal(array, np.arange(size) + 1.0)
    assert all(f[0].item() == -1 for f in filler)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_grows_while_others_hold_it(way, growth):
    x = fresh(5)
    array = WAYS[way](x)
    with pytest.raises(RuntimeError, match=r"cannot grow to \(50000,\).*use a clone"):
        GROWTHS[growth](x)
    assert x.shape == (5,) and x.tolist() == [0, 1, 2, 3, 4]
    array[0] = 7
    assert x[0].item() == 7
    del array
    if way != "interface":  # an address was given out: it counts on the tensor, not on who asked
        GROWTHS[growth](x)
        assert x.shape == (50_000,)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_smaller_shapes_stay_where_they_are():
    x = fresh(6)
    array = x.numpy()
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    array[3] = 9
    assert x[1, 1].item() == 9
    assert x.resize_(6).tolist() == [0, 1, 2, 9, 4, 5]
    t.add(t.ones(2), 1, out=x)
    assert x.tolist() == [2, 2] and array.tolist() == [2, 2, 2, 9, 4, 5]


def test_resize_of_a_view_keeps_the_order_of_memory():
    base = fresh(6)
    view = base[2:4]
    assert view.resize_(3).tolist() == [2, 3, 4]
    grown = base[4:].resize_(40)
    assert grown.shape == (40,) and grown[:2].tolist() == [4, 5]
    grown.fill_(1)
    assert base.tolist() == [0, 1, 2, 3, 4, 5]


def test_memory_of_others_does_not_grow():
    array = np.arange(4.0)
    x = t.from_numpy(array)
    with pytest.raises(RuntimeError, match="memory of another library"):
        x.resize_(8)
    x.resize_(2).fill_(7)
    assert array.tolist() == [7, 7, 2, 3]


@pytest.mark.parametrize("sizes", [(-1,), (2**62, 4), (2**40,)], ids=str)
def test_impossible_sizes_change_nothing(sizes):
    x = fresh(3)
    with pytest.raises((RuntimeError, MemoryError)):
        x.resize_(sizes)
    assert x.shape == (3,) and x.tolist() == [0, 1, 2]


def test_a_storage_is_that_of_its_tensor_when_asked():
    x = fresh(4)
    storage, address = x.untyped_storage(), x.data_ptr()
    x.set_(fresh(9))
    assert storage.data_ptr() == address and storage.nbytes() == 16


def test_a_view_that_needs_another_layout_leaves_exports_alone():
    x = t.nn.functional.conv2d(t.ones(2, 3, 8, 8), t.ones(16, 3, 3, 3))
    array = x.numpy()
    shown = x.view(-1)
    gc.collect()
    filler = [t.zeros(2, 16, 6, 6) for _ in range(20)]
    assert (array == 27).all() and (shown == 27).all() and len(filler) == 20
    array += 1
    assert (x == 28).all()


def test_an_exported_tensor_and_its_import_are_known_to_overlap():
    x = fresh(1000)
    y = t.from_numpy(x.numpy())
    assert t.add(x[:-1], 1, out=y[1:]).tolist() == [float(i) + 1 for i in range(999)]


def test_a_tensor_is_told_from_an_array():
    """Libraries know NumPy's arrays by this attribute, and take them by another way than tensors."""
    assert not hasattr(fresh(2), "__array_interface__")
    assert np.shares_memory(np.asarray(x := fresh(2)), x.numpy())


class Program:
    """Random steps on a few tensors; each export remembers what it must show."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.steps: list[str] = []
        self.tensors = [self.tensor() for _ in range(3)]
        # An export, and the array that shows the same elements by NumPy's rules.
        self.exports: list[tuple[np.ndarray, np.ndarray]] = []
        self.models = [np.array(x.numpy()) for x in self.tensors]

    def tensor(self) -> t.Tensor:
        size = self.random.choice([1, 7, 16, 17, 300, 20_000])
        return t.full((size,), float(self.random.randrange(100)))

    def run(self) -> None:
        moves = [
            self.export,
            self.export,
            self.drop,
            self.swap,
            self.set_data,
            self.resize,
            self.store,
            self.write,
        ]
        for _ in range(STEPS):
            move = self.random.choice(moves)
            at = self.random.randrange(len(self.tensors))
            self.steps.append(f"{move.__name__}({at})")
            move(at)
            self.check()

    def check(self) -> None:
        for array, model in self.exports:
            assert np.array_equal(array, model), self.steps
        for x, model in zip(self.tensors, self.models, strict=True):
            assert x.tolist() == model.tolist(), self.steps

    def export(self, at: int) -> None:
        way = self.random.choice(list(WAYS))
        self.steps[-1] += f" {way}"
        self.exports.append((WAYS[way](self.tensors[at]), self.models[at]))

    def drop(self, at: int) -> None:
        if self.exports:
            del self.exports[self.random.randrange(len(self.exports))]

    def swap(self, at: int) -> None:
        other = self.random.randrange(len(self.tensors))
        self.tensors[at].set_(self.tensors[other])
        self.models[at] = self.models[other]

    def set_data(self, at: int) -> None:
        made = self.tensor()
        self.tensors[at].data = made
        self.models[at] = np.array(made.tolist(), np.float32)

    def resize(self, at: int) -> None:
        size = self.random.choice([1, 5, 16, 300, 30_000])
        self.grow(at, size, lambda x: x.resize_(size))

    def store(self, at: int) -> None:
        size = self.random.choice([1, 5, 16, 300, 30_000])
        self.grow(at, size, lambda x: t.add(t.full((size,), 3.0), 1, out=x), value=4)

    def grow(self, at: int, size: int, change: Callable, value: float | None = None) -> None:
        """A change of shape; what comes into sight is written, so that the model knows it."""
        x, old = self.tensors[at], self.models[at]
        address = x.data_ptr()
        try:
            change(x)
        except RuntimeError as error:
            assert "cannot grow" in str(error) and size > old.size, self.steps
            return
        assert x.shape == (size,)
        if x.data_ptr() != address:
            kept = min(size, old.size) if value is None else 0
            model = np.zeros(size, np.float32)
            model[:kept] = old[:kept]
            x[kept:] = 0 if value is None else value
            model[kept:] = 0 if value is None else value
        else:
            model = self.same_place(old, size)
            if value is not None:
                model[:] = value
        self.models[at] = model

    @staticmethod
    def same_place(old: np.ndarray, size: int) -> np.ndarray:
        """The first elements of the memory that the model shows."""
        whole = old if old.base is None else old.base
        return whole[:size]

    def write(self, at: int) -> None:
        number = float(self.random.randrange(1000))
        if self.exports and self.random.random() < 0.5:
            array, model = self.random.choice(self.exports)
            array[::2] = number
            model[::2] = number
        else:
            self.tensors[at][::2] = number
            self.models[at][::2] = number


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("part", range(10))
def test_random_programs(part):
    """Exports beside set_, data, resize_ and out= always show what NumPy's aliasing says."""
    for number in range(PROGRAMS // 10):
        Program(f"{SEED} {part} {number}").run()
