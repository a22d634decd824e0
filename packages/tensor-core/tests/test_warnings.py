"""What is right as it stands, but hardly what was meant, is said; as an error where warnings are errors."""

import math
import threading
import warnings

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import linalg

RESIZED = "An output with one or more elements was resized"


def say(match):
    return pytest.warns(UserWarning, match=match)


@pytest.mark.parametrize(
    "call",
    [
        lambda: taeda.ones(1).std(),
        lambda: taeda.ones(3, 1).var(1),
        lambda: taeda.var_mean(taeda.ones(3, 1), 1),
        lambda: taeda.std_mean(taeda.ones(1)),
        lambda: taeda.ones(4).var(correction=4),
        lambda: taeda.ones(4, dtype=taeda.complex64).var(correction=5),
        lambda: taeda.cov(taeda.ones(2, 1)),
    ],
)
def test_no_degrees_of_freedom(call):
    with say("degrees of freedom is <= 0"):
        call()


def test_enough_degrees_of_freedom():
    assert taeda.ones(1).std(correction=0).item() == 0
    assert taeda.ones(3, 2).var(1).tolist() == [0, 0, 0]
    assert taeda.zeros(0, 3).var(1).shape == (0,)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda out: taeda.add(taeda.ones(3), 1, out=out), (3,)),
        (lambda out: taeda.mm(taeda.ones(3, 3), taeda.ones(3, 3), out=out), (3, 3)),
        (lambda out: taeda.sum(taeda.ones(3, 4), 0, out=out), (4,)),
        (lambda out: taeda.cat([taeda.ones(3)], out=out), (3,)),
        (lambda out: linalg.inv(taeda.eye(3), out=out), (3, 3)),
        (lambda out: taeda.sort(taeda.ones(3), out=(out, taeda.empty(0, dtype=taeda.int64)))[0], (3,)),
    ],
)
def test_outputs_that_are_resized(call, shape):
    out = taeda.zeros(2)
    with say(RESIZED):
        call(out)
    assert out.shape == shape
    empty = taeda.empty(0)
    assert call(empty).shape == shape


@pytest.mark.parametrize(
    "make",
    [
        lambda out: taeda.zeros(2, 3, out=out),
        lambda out: taeda.full((2, 3), 7.0, out=out),
        lambda out: taeda.eye(2, 3, out=out),
        lambda out: taeda.ones((2, 3), out=out),
    ],
)
def test_outputs_of_what_is_asked_for_sizes_take_these_without_a_warning(make):
    out = taeda.zeros(4)
    assert make(out) is out and out.shape == (2, 3)


def test_imaginary_parts_that_get_lost():
    x = taeda.full((2,), 1 + 2j)
    for lose in (
        x.float,
        lambda: x.to(taeda.int64),
        lambda: taeda.zeros(2).copy_(x),
        lambda: taeda.zeros(2).__setitem__(0, x[0]),
        lambda: taeda.zeros(2).fill_(x[0]),
    ):
        with say("Casting complex values to real discards the imaginary part"):
            lose()
    assert x.real.tolist() == [1, 1] and x.bool().all() and x.to(taeda.complex128).imag.tolist() == [2, 2]


def test_reversing_other_than_two_dimensions():
    for shape in ((), (2, 3, 4)):
        with say(r"use of `x\.T` on tensors of dimension other than 2"):
            assert taeda.zeros(shape).T.shape == shape[::-1]
    assert taeda.zeros(3).T.shape == (3,) and taeda.zeros(3, 2).T.shape == (2, 3)


def test_warnings_may_be_errors():
    out = taeda.zeros(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="degrees of freedom"):
            taeda.ones(1).std()
        with pytest.raises(UserWarning, match=RESIZED):
            taeda.add(taeda.ones(3), 1, out=out)
    assert out.tolist() == [0, 0]


def test_from_a_thread():
    found = []

    def run():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(math.isnan(taeda.ones(1).var().item()))
            found.append(str(caught[0].message))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found[0] and "degrees of freedom" in found[1]
