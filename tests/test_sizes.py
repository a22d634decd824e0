"""Sizes, counts and offsets that leave 64 bits: an error that names the operator, never memory of somebody else.

TAEDA_TEST_SEED chooses other random calls.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda as t

F = t.nn.functional
SEED = int(os.environ.get("TAEDA_TEST_SEED", "2019"))
BIG = 2**63 - 1
MOST = 2**59 - 1


def wide(*sizes: int, dtype: t.dtype = t.float32) -> t.Tensor:
    """One element shown many times."""
    return t.ones((1,) * len(sizes), dtype=dtype).expand(sizes)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "bincount": (lambda: t.bincount(t.tensor([BIG, 5, 3])), "bincount"),
    "cat": (lambda: t.cat([wide(MOST)] * 32), "cat"),
    "stack": (lambda: t.stack([wide(MOST)] * 2), "has more elements|does not fit"),
    "hstack": (lambda: t.hstack([wide(MOST)] * 40), "hstack"),
    "one_hot": (lambda: F.one_hot(t.tensor([BIG])), "one_hot"),
    "repeat": (lambda: t.ones(3).repeat(2**62), "repeat"),
    "repeat of many": (lambda: wide(2**40).repeat(2**40), "repeat|more elements"),
    "tile": (lambda: t.tile(t.ones(3), (2**62,)), "tile"),
    "expand": (lambda: t.ones(1).expand(2**62), "more elements"),
    "expand without elements": (lambda: t.ones(0, 1, 1).expand(0, 2**40, 2**40), "more elements"),
    "empty without elements": (lambda: t.empty(0, 2**62, 2**62), "more elements"),
    "kron": (lambda: t.kron(wide(2**40), wide(2**40)), "kron"),
    "outer": (lambda: t.outer(wide(2**40), wide(2**40)), "more elements"),
    "meshgrid": (lambda: t.meshgrid(wide(2**40), wide(2**40), indexing="ij"), "more elements"),
    "einsum": (lambda: t.einsum("i,j->ij", wide(2**40), wide(2**40)), "more elements"),
    "matmul": (lambda: t.matmul(wide(2**30, 1, 2, 2), wide(1, 2**30, 2, 2)), "more elements|fit in memory"),
    "diag_embed": (lambda: t.diag_embed(t.ones(2), offset=-(2**63)), "diag_embed"),
    "pad": (lambda: t.constant_pad_nd(t.ones(4), [BIG, BIG]), "constant_pad_nd"),
    "pad both ways": (lambda: t.constant_pad_nd(t.ones(4), [-(2**63), BIG]), "constant_pad_nd"),
    "histc": (lambda: t.histc(t.tensor([0, 1.7e308, -1.7e308], dtype=t.float64), bins=4), "histc"),
    "arange": (lambda: t.arange(-(2**63), BIG, 1), "arange"),
    "linspace": (lambda: t.linspace(0, 1, 2**62), "more elements"),
    "tril_indices": (lambda: t.tril_indices(2**40, 2**40), "tril_indices"),
    "repeat_interleave": (lambda: t.repeat_interleave(t.ones(4), t.tensor([BIG, 1, 1, 1])), "repeat_interleave"),
    "conv2d": (lambda: F.conv2d(t.ones(1, 1, 8, 8), wide(1, 1, 2**40, 1), dilation=2**31 - 1), "conv2d"),
    "conv2d groups": (lambda: F.conv2d(t.ones(1, 0, 8, 8), t.ones(0, 4, 3, 3), groups=2**62), "conv2d"),
    "conv1d same": (lambda: F.conv1d(t.ones(1, 1, 8), t.ones(1, 1, 5), padding="same", dilation=2**62), "conv1d"),
    "conv_transpose2d": (
        lambda: F.conv_transpose2d(wide(1, 1, 2**40, 1), t.ones(1, 1, 1, 1), stride=2**31 - 1),
        "conv_transpose2d|more elements",
    ),
    "as_strided": (lambda: t.ones(4).as_strided((2,), (1,), BIG), "as_strided"),
    "view": (lambda: t.ones(4).view(2**62, 4), "view"),
    "split": (lambda: t.ones(4).split([BIG, BIG, 6]), "split"),
    "eye": (lambda: t.eye(2**40, 2**40), "more elements"),
    "full on meta": (lambda: t.full((2**60,), 1, device="meta"), "more elements"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_counted_is_refused(case):
    call, words = WRONG[case]
    with pytest.raises((RuntimeError, MemoryError, OverflowError), match=words):
        call()


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ((-(2**63), BIG, 2**62), 4),
        ((BIG, -(2**63), -(2**62)), 4),
        ((-(2**63), BIG, BIG), 3),
        ((0, BIG, BIG), 1),
        ((BIG - 2, BIG), 2),
        ((-(2**63), -(2**63) + 3), 3),
    ],
    ids=str,
)
def test_arange_between_the_ends_of_int64(bounds, count):
    expected = list(range(*bounds))
    assert len(expected) == count and t.arange(*bounds).tolist() == expected


def test_combinations_of_more_elements_than_memory_holds():
    assert t.combinations(t.arange(3), 2**40).shape == (0, 2**40)
    assert t.combinations(t.ones(0), 2**40, with_replacement=True).shape == (0, 2**40)
    for count in (1, 2, 1000):
        with pytest.raises(MemoryError, match="combinations: 9223372036854775807 out of"):
            t.combinations(t.arange(count), BIG, with_replacement=True)


def test_large_parts_give_one_part():
    assert [p.tolist() for p in t.arange(3).split(BIG)] == [[0, 1, 2]]
    assert t.arange(5).unfold(0, 2, BIG).tolist() == [[0, 1]]
    assert t.arange(5)[::BIG].tolist() == [0]


class Managed(ctypes.Structure):
    """DLPack's DLManagedTensor."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
    ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", DELETER),
]  # fmt: skip


def numbers(values: tuple[int, ...]) -> ctypes.Array:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


class Producer:
    """A capsule with facts of our choice over 64 bytes; counts how often it is given back."""

    def __init__(self, sizes: tuple[int, ...], steps: tuple[int, ...] | None = None, **facts: Any) -> None:
        self.returned = 0
        self.array = np.arange(8.0)
        self.kept = numbers(sizes), numbers(steps or ()), DELETER(self.give_back)
        self.managed = Managed(
            self.array.ctypes.data, 1, 0, len(sizes), 2, 64, 1, ctypes.addressof(self.kept[0]),
            ctypes.addressof(self.kept[1]) if steps else None, 0, None, self.kept[2],
        )  # fmt: skip
        for name, value in facts.items():
            setattr(self.managed, name, value)

    def give_back(self, _: Any) -> None:
        self.returned += 1

    def capsule(self) -> Any:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor", None)


def test_a_right_capsule_is_given_back_once():
    producer = Producer((2, 3), (3, 1))
    x = t.from_dlpack(producer.capsule())
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and producer.returned == 0
    del x
    assert producer.returned == 1


@pytest.mark.parametrize(
    "producer",
    [
        Producer((-1, 2)),
        Producer((2**62, 4)),
        Producer((2**31, 2**31, 2)),
        Producer((0, 2**62, 2**62)),
        Producer((2, 2), (BIG, BIG)),
        Producer((2,), (-(2**63),)),
        Producer((1,) * 65),
        Producer((2,), ndim=-1),
        Producer((2,), ndim=2**31 - 1),
        Producer((2,), shape=None),
        Producer((2,), data=None),
        Producer((2,), byte_offset=3),
        Producer((2,), bits=24),
        Producer((2,), device_type=2),
    ],
    ids=lambda p: f"{p.managed.ndim} dims",
)
def test_hostile_capsules(producer):
    capsule = producer.capsule()
    # A device that DLPack has a number for is looked for, and says itself why it is not there.
    with pytest.raises(
        (BufferError, RuntimeError, MemoryError, OverflowError),
        match=r"^from_dlpack|^device 'cuda' cannot be used",
    ):
        t.from_dlpack(capsule)
    assert producer.returned == 0, "what was refused stays with the producer"
    del capsule


@pytest.mark.parametrize(
    "facts",
    [
        {"shape": (-1,)},
        {"shape": (2**62, 4)},
        {"shape": (0, 2**62, 2**62)},
        {"shape": (2, 2), "strides": (BIG, BIG)},
        {"shape": (3,), "strides": (2**62,)},
    ],
    ids=str,
)
def test_hostile_array_interfaces(facts):
    class Hostile:
        array = np.arange(8.0)
        __array_interface__ = {**array.__array_interface__, "strides": None, **facts}

    before = sys.getrefcount(Hostile)
    with pytest.raises((ValueError, RuntimeError, MemoryError, OverflowError)):
        t.as_tensor(Hostile())
    assert sys.getrefcount(Hostile) == before


def test_the_product_of_any_sizes():
    assert t.Size([2, 3]).numel() == 6 and t.Size([]).numel() == 1
    assert t.Size([2**70, 3]).numel() == 3 * 2**70 and t.Size([2**40, 2**40]).numel() == 2**80


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_extreme_calls_of_every_operator(device):
    """Random calls of every record with extreme numbers and shapes, each in a process of its own."""
    command = [sys.executable, "-m", "taeda_testing.extreme", str(SEED), "3", device]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print("seed", SEED, done.stdout)
    assert "CRASH" not in done.stdout
    found = re.search(r"(\d+) calls", done.stdout)
    assert found and int(found[1]) > 300
