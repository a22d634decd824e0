"""Arguments of every kind as C sees them; tensors read, made, viewed and wrapped; operators called from C."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library

NONE, TENSOR, BOOL, INT, UINT, FLOAT, COMPLEX, TEXT, DTYPE, DEVICE, INTS, FLOATS, TENSORS, GENERATOR = range(
    14
)


@pytest.fixture(scope="module", autouse=True)
def probe(request):
    path = request.getfixturevalue("shared_plugin")("probe")
    backends.load(path)
    made = ctypes.CDLL(str(path))
    made.bytes_released.restype = made.count_releases.restype = ctypes.c_int64
    return made


def call(name, *args, **kwargs):
    return library.op(f"probe::{name}")(*args, **kwargs)


def rows(result):
    return [tuple(row) for row in result.reshape(-1, 3).tolist()]


def test_arguments_of_every_kind():
    x = taeda.ones(2, 3)
    generator = taeda.Generator().manual_seed(7)
    found = rows(
        call(
            "kinds",
            x,
            2.5,
            x[0],
            True,
            4,
            -3,
            5,
            [1, 2, 3],
            [9],
            1,
            [0.5, 0.25],
            True,
            "text",
            "añ",
            taeda.int16,
            taeda.bool,
            "cpu",
            "meta",
            generator,
            [x, x, x],
            [x, None, x],
        )
    )
    assert found == [
        (TENSOR, 0, 6),
        (TENSOR, 0, 1001),
        (TENSOR, 0, 3),
        (BOOL, 0, 1),
        (INT, 0, 4),
        (INT, 0, -3),
        (INT, 0, 5),
        (INTS, 3, 3),
        (INTS, 1, 9),
        (FLOAT, 0, 1),
        (FLOATS, 2, 0.25),
        (BOOL, 0, 1),
        (TEXT, 4, ord("t")),
        (TEXT, 3, "añ".encode()[-1] - 256),
        (DTYPE, 0, 2),
        (DTYPE, 0, 0),
        (DEVICE, 0, 0),
        (DEVICE, 0, 10),
        (GENERATOR, 0, 7000),
        (TENSORS, 3, 7),
        (TENSORS, 3, 5),
        (TENSOR, 0, 1001),
    ]
    # The numbers that C reserved are gone.
    fresh = taeda.Generator().manual_seed(7)
    assert taeda.rand(4, generator=generator).tolist() != taeda.rand(4, generator=fresh).tolist()


def test_absent_arguments():
    x = taeda.ones(2)
    none = [None] * 3
    given = [
        x,
        x,
        None,
        1,
        None,
        1,
        None,
        [],
        None,
        1.0,
        [],
        False,
        "",
        None,
        taeda.bool,
        None,
        "cpu",
        *none[:2],
    ]
    found = rows(call("kinds", *given, [], []))
    absent = [2, 4, 6, 8, 13, 15, 17, 18]
    assert [i for i, row in enumerate(found) if row[0] == NONE] == absent
    assert [found[i] for i in (7, 10, 12, 19, 20)] == [
        (INTS, 0, 0),
        (FLOATS, 0, 0),
        (TEXT, 0, 0),
        (TENSORS, 0, 0),
        (TENSORS, 0, 0),
    ]


@pytest.mark.parametrize(
    ("number", "row"),
    [
        (True, (BOOL, 0, 1)),
        (-(2**63), (INT, 0, -(2.0**63))),
        (2**63, (UINT, 0, 2.0**63)),
        (0.5, (FLOAT, 0, 0.5)),
        (3 + 2j, (COMPLEX, 0, 32)),
        (taeda.tensor(5), (INT, 0, 5)),
    ],
)
def test_numbers(number, row):
    assert rows(call("number", number)) == [row]


# --- reading ---

CONTIGUOUS, CHANNELS_LAST, DENSE, READONLY, VIEW = 1, 2, 4, 32, 64


@pytest.mark.parametrize(
    ("make", "offset", "flags"),
    [
        (lambda x: x, 0, CONTIGUOUS | DENSE),
        (lambda x: x.T, 0, DENSE | VIEW),
        (lambda x: x[1:, ::-2], 5 * 8, VIEW),
        (lambda x: x[0, 0], 0, CONTIGUOUS | DENSE | VIEW),
        (lambda x: x[2:], 0, CONTIGUOUS | DENSE | VIEW),
        (lambda x: x.expand(4, 2, 3), 0, VIEW),
    ],
)
def test_facts_of_a_tensor(make, offset, flags):
    base = taeda.arange(6, dtype=taeda.float64).reshape(2, 3).clone()
    x = make(base)
    found = call("facts", x).tolist()
    n = x.dim()
    assert found[:5] == [n, 12, 0, 0, x.numel()]
    assert int(found[5]) & ~DENSE == flags & ~DENSE
    assert found[6:9] == [8, offset, 48]
    assert (found[9 : 9 + n], found[9 + n :]) == (list(x.shape), list(x.stride()))


def test_facts_of_other_tensors():
    array = np.zeros(3)
    array.flags.writeable = False
    assert int(call("facts", taeda.from_numpy(array))[5].item()) & READONLY
    last = taeda.empty(2, 3, 4, 5).to(memory_format=taeda.channels_last)
    assert int(call("facts", last)[5].item()) & (CONTIGUOUS | CHANNELS_LAST) == CHANNELS_LAST
    half = call("facts", taeda.ones(3, dtype=taeda.float16)).tolist()
    assert (half[1], half[6]) == (9, 2)


def test_an_older_plugin_gets_what_it_knows():
    size, first, untouched = call("short_facts", taeda.ones(5, 2)).tolist()
    assert (first, untouched) == (5, 1) and size > 0


# --- making ---


def test_new_tensors():
    made = call("make", [2, 3], None, taeda.int32, "cpu")
    assert (made.shape, made.stride(), made.dtype) == ((2, 3), (3, 1), taeda.int32)
    assert call("make", [2, 3], [1, 2], taeda.bool, "cpu").stride() == (1, 2)
    assert call("make", [], None, taeda.complex64, "cpu").shape == ()
    assert call("make", [0, 4], None, taeda.float32, "meta").device.type == "meta"


@pytest.mark.parametrize(
    ("sizes", "strides", "exception", "words"),
    [
        ([2, -1], None, ValueError, "sizes must not be negative, found \\(2, -1\\)"),
        ([2**62, 2**62], None, MemoryError, "more elements than can be counted"),
        ([2**50], None, MemoryError, "does not fit in memory"),
        ([2] * 65, None, ValueError, "ndim must be from 0 to 64, found 65"),
    ],
)
def test_tensors_that_cannot_be(sizes, strides, exception, words):
    with pytest.raises(exception, match=words):
        call("make", sizes, strides, taeda.float32, "cpu")


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [([6], [1], 0), ([2, 2], [3, 1], 1), ([3], [-2], 5), ([4], [0], 2), ([0, 9], [50, 50], 0), ([], [], 5)],
)
def test_views_share_memory(sizes, strides, offset):
    x = taeda.arange(6, dtype=taeda.float64)
    view = call("view", x, sizes, strides, offset)
    steps = tuple(8 * s for s in strides)
    wanted = np.lib.stride_tricks.as_strided(x.numpy()[min(offset, 5) :], sizes, steps)
    np.testing.assert_array_equal(view.numpy(), wanted)
    if view.numel():
        version = x._version
        x += 10
        np.testing.assert_array_equal(view.numpy(), wanted)
        assert view._version == x._version == version + 1


def test_a_view_begins_at_the_tensors_first_element():
    x = taeda.arange(6, dtype=taeda.float64)[2:]
    assert call("view", x, [2], [1], 1).tolist() == [3, 4]
    assert call("view", x, [2], [1], -2).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"),
    [
        ([7], [1], 0),
        ([2], [6], 0),
        ([1], [1], -1),
        ([2], [-1], 0),
        ([1], [1], 6),
        ([2], [2**62], 0),
        ([1], [1], 2**61),
    ],
)
def test_views_stay_inside(sizes, strides, offset):
    with pytest.raises((ValueError, OverflowError), match="tensor_view"):
        call("view", taeda.arange(6, dtype=taeda.float64), sizes, strides, offset)


def test_memory_of_the_plugins(probe):
    count, nbytes = probe.count_releases(), probe.bytes_released()
    made = call("wrap", 6, [2, 3])
    assert made.tolist() == [[0, 1, 2], [3, 4, 5]]
    made += 1
    part = made[1]
    del made
    gc.collect()
    assert probe.count_releases() == count
    assert part.tolist() == [4, 5, 6]
    del part
    assert (probe.count_releases(), probe.bytes_released()) == (count + 1, nbytes + 48)


def test_wrapped_memory_with_strides_and_without_writing(probe):
    assert call("wrap", 6, [3, 2], [1, 3]).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert call("wrap", 3, [3], [-1]).tolist() == [2, 1, 0]
    fixed = call("wrap", 2, [2], readonly=True)
    with pytest.raises(RuntimeError, match="read-only"):
        fixed += 1
    count = probe.count_releases()
    with pytest.raises(ValueError, match=r"tensor_wrap: shape \(7,\) .* need 56 bytes, found 48"):
        call("wrap", 6, [7])
    # The memory stayed with the plug-in, which freed it.
    assert probe.count_releases() == count


def test_elements_to_and_from_the_host():
    x = taeda.arange(6, dtype=taeda.float64).reshape(2, 3)
    view, version = x.T[::-1], x._version
    result = call("scribble", view)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert result.tolist() == view.tolist() and x._version == version + 1
    with pytest.raises(ValueError, match="take 48 bytes, found room for 56"):
        call("scribble", x, 8)
    bytes_only = taeda.ones(3, dtype=taeda.int8)
    assert call("scribble", bytes_only).tolist() == [1, 1, 1]


# --- operators from C ---


def test_lists_as_results_and_arguments():
    x = taeda.arange(7, dtype=taeda.float64)
    assert call("shuffle", x, 3).tolist() == [6, 3, 4, 5, 0, 1, 2]
    assert call("shuffle", taeda.ones(4, 2, device="meta"), 3).shape == (4, 2)


def test_results_that_are_no_tensors():
    x = taeda.ones(2)
    assert call("same", x, x).tolist() == [BOOL, 1, NONE, NONE]
    assert call("same", x, x + 1).tolist() == [BOOL, 0, NONE, NONE]


def test_in_place_and_out_forms():
    x, out = taeda.ones(2), taeda.zeros(0)
    result = call("grow", x, out)
    assert (x.tolist(), out.tolist(), result is out) == ([2, 2], [20, 20], True)


def test_the_hosts_lock_can_be_given_up():
    assert call("unlocked", taeda.ones(1)).tolist() == [1, 0, 1]


def test_threads_that_know_nothing_of_python():
    x = taeda.ones(3)
    assert call("threaded", "exp", x).tolist() == x.exp().tolist()
    with pytest.raises(ValueError, match="no operator named 'nobody_has_this'"):
        call("threaded", "nobody_has_this", x)
    with library.Library("errands") as lib:

        @lib.operator("errands::twice(Tensor self) -> Tensor")
        def twice(self):
            return self * 2

        @lib.operator("errands::fail(Tensor self) -> Tensor")
        def fail(self):
            raise ZeroDivisionError("far away")

        assert call("threaded", "errands::twice", x).tolist() == [2, 2, 2]
        with pytest.raises(ZeroDivisionError, match=r"^probe::threaded: ZeroDivisionError: far away$"):
            call("threaded", "errands::fail", x)


def test_the_census_of_operators():
    operators = tuple(library.operators())
    count, found, core, bad, beyond = call("census", taeda.ones(1)).tolist()
    assert (count, found, core) == (len(operators), 1, sum(o.core for o in operators))
    assert (bad, beyond) == (0, 3)
