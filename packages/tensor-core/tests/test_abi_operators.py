"""Operators that C defines: called from Python, inferred on meta, with errors that keep their type and text."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library
from taeda_testing.settling import without_collector

POLY = [
    "poly::cube",
    "poly::totals",
    "poly::weighed",
    "poly::halved",
    "poly::odd",
    "poly::forgetful",
    "poly::caller",
    "poly::swallower",
    "poly::renamer",
    "poly::nothing",
]


@pytest.fixture(scope="module", autouse=True)
def poly(request):
    path = request.getfixturevalue("shared_plugin")("operators")
    backends.load(path)
    made = ctypes.CDLL(str(path))
    made.count_inferred.restype = ctypes.c_int64
    made.error_text.restype = ctypes.c_char_p
    return made


X = taeda.tensor([[1.0, 2.0, -3.0], [0.5, 0.0, 4.0]], dtype=taeda.float64)


def call(name, *args, **kwargs):
    return library.op(f"poly::{name}")(*args, **kwargs)


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[:, ::-2], lambda x: x[0, 0], lambda x: x[:0]]
)
def test_inference_and_kernel(view):
    x = view(X)
    result = call("cube", x, 2.0)
    assert result.shape == x.shape and result.dtype == taeda.float64
    np.testing.assert_allclose(result.numpy(), 2 * x.numpy() ** 3)


def test_defaults_and_names():
    assert call("cube", X).tolist() == call("cube", self=X, k=1).tolist() == (X**3).tolist()
    assert taeda.ops.poly.cube(X).tolist() == (X**3).tolist()
    with pytest.raises(AttributeError, match=r"ops.poly' has no attribute 'nobody_has_this'"):
        assert taeda.ops.poly.nobody_has_this
    with pytest.raises(AttributeError, match="ops' has no attribute 'nobody_has_this'"):
        assert taeda.ops.nobody_has_this
    with pytest.raises(TypeError, match="poly::cube: missing argument 'self'"):
        call("cube")


def test_inference_alone_on_meta(poly):
    before = poly.count_inferred()
    result = call("cube", taeda.empty(7, 1, 5, dtype=taeda.int16, device="meta"))
    assert (result.shape, result.dtype, result.device.type) == ((7, 1, 5), taeda.int16, "meta")
    assert poly.count_inferred() == before + 1
    total, scaled = call("totals", [taeda.empty(3, device="meta")] * 2)
    assert total.shape == scaled.shape == (3,) and total.device.type == "meta"


def test_several_results_and_lists():
    total, scaled = call("totals", [X, X * 2, X[0].expand(2, 3)], by=-1.5)
    wanted = (X * 3 + X[0]).numpy()
    np.testing.assert_allclose(total.numpy(), wanted)
    np.testing.assert_allclose(scaled.numpy(), -1.5 * wanted)


def test_in_terms_of_others():
    assert call("weighed", X).item() == (X * X).sum().item()
    assert call("weighed", X, taeda.full((3,), 2.0)).item() == 2 * (X * X).sum().item()
    assert call("weighed", taeda.ones(2, 3, device="meta")).shape == ()


def test_a_kernel_that_makes_its_result():
    assert call("halved", X).tolist() == (X / 2).tolist()
    with pytest.raises(NotImplementedError, match=r"poly::halved: backend 'meta' has no kernel"):
        call("halved", taeda.ones(2, device="meta"))


def test_what_is_known_of_them():
    kinds = {name: library.op(name).kind for name in POLY}
    assert kinds["poly::cube"] == "structured"
    assert library.op("poly::cube").kernels() == {"cpu": "poly of the test"}
    assert library.op("poly::cube").schema == "poly::cube(Tensor self, float k=1.0) -> Tensor"


def test_without_kernel_or_form_an_operator_says_so():
    with pytest.raises(NotImplementedError, match="poly::nothing: backend 'cpu' has no kernel"):
        call("nothing", X)


@pytest.mark.parametrize(
    ("how", "exception", "words"),
    [
        (0, ValueError, "poly::odd: inference gave 65 dimensions"),
        (1, ValueError, "poly::odd: inference gave element type number 99"),
        (2, ValueError, "poly::odd: inference gave a negative size -4"),
        (3, IndexError, "this is odd"),
        (4, ValueError, "poly::odd: inference gave -1 dimensions"),
    ],
)
def test_odd_inference_is_named(how, exception, words):
    for x in (X, taeda.ones(2, device="meta")):
        with pytest.raises(exception, match=words):
            call("odd", x, how)


def test_a_form_that_stores_nothing_is_named():
    with pytest.raises(TypeError, match=r"poly::forgetful: .* found nothing"):
        call("forgetful", X)


@pytest.mark.parametrize(
    ("name", "dtype", "exception", "words"),
    [
        ("cube", taeda.float32, TypeError, "poly::cube: poly: float64 only"),
        ("totals", taeda.float32, TypeError, "poly: float64 only"),
    ],
)
def test_errors_of_a_kernel(name, dtype, exception, words):
    x = X.to(dtype)
    with pytest.raises(exception, match=words):
        call(name, [x] if name == "totals" else x)


def test_errors_of_inference():
    with pytest.raises(ValueError, match="poly::totals: argument 'items' is empty"):
        call("totals", [])


# --- errors that pass through C ---


class Odd(Exception):
    """An exception that C has no status for."""


@pytest.fixture
def python_op():
    with library.Library("abipy") as lib:

        def make(exception):
            @lib.operator("abipy::fail(Tensor self) -> Tensor")
            def fail(self):
                raise exception

        yield make


@pytest.mark.parametrize(
    "exception",
    [KeyError("mine"), Odd("very"), StopIteration(3), NotImplementedError("not now"), UnicodeError("x")],
    ids=lambda e: type(e).__name__,
)
def test_a_python_exception_comes_through_c_as_it_was(python_op, exception):
    python_op(exception)
    with pytest.raises(type(exception)) as caught:
        call("caller", "abipy::fail", X)
    assert caught.value is exception
    names = []
    trace = caught.value.__traceback__
    while trace:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert names[-1] == "fail"


def test_an_error_of_taeda_comes_through_c_as_it_was():
    for inner in ("poly::caller", "nobody_has_this"):
        with pytest.raises((ValueError, TypeError)) as caught:
            call("caller", inner, X)
    assert str(caught.value) == "op_find: there is no operator named 'nobody_has_this'"
    with pytest.raises(NotImplementedError, match=r"^bitwise_not: ") as caught:
        call("caller", "bitwise_not", X)
    with pytest.raises(NotImplementedError) as plain:
        taeda.bitwise_not(X)
    assert str(caught.value) == str(plain.value)


def test_a_swallowed_exception_is_not_left_set(python_op):
    python_op(Odd("swallowed"))
    assert call("swallower", "abipy::fail", X).tolist() == (-X).tolist()
    # An error that were still set would come out of the next call that can fail.
    assert [int(text) for text in ("1", "2")] == [1, 2]
    assert call("swallower", "nobody_has_this", X).tolist() == (-X).tolist()


def test_a_swallowed_exception_is_not_kept(monkeypatch):
    class Held:
        pass

    watchers = []
    monkeypatch.setattr(sys, "last_value", None, raising=False)
    with without_collector(), library.Library("abihold") as lib:

        @lib.operator("abihold::fail(Tensor self) -> Tensor")
        def fail(self):
            local = Held()
            watchers.append(weakref.ref(local))
            raise Odd("swallowed")

        call("swallower", "abihold::fail", X)
        assert watchers[0]() is None


def test_another_error_in_its_place(python_op):
    python_op(Odd("first"))
    with pytest.raises(BufferError, match=r"^poly::renamer: another error in its place$") as caught:
        call("renamer", "abipy::fail", X)
    assert caught.value.__cause__ is None


def test_the_text_of_a_python_exception_is_there_for_c(python_op, poly):
    python_op(Odd("for C to read"))
    call("swallower", "abipy::fail", X)
    assert poly.error_text() == b"Odd: for C to read"


def test_errors_nest(python_op):
    python_op(LookupError("deep down"))
    with library.Library("abinest") as lib:

        @lib.operator("abinest::again(Tensor self) -> Tensor")
        def again(self):
            try:
                return call("caller", "abipy::fail", self)
            except LookupError as error:
                raise Odd("outer") from error

        with pytest.raises(Odd, match="outer") as caught:
            call("caller", "abinest::again", X)
    assert str(caught.value.__cause__) == "deep down"


def test_each_thread_has_its_own_error(poly):
    texts = {}

    def run(name):
        call("swallower", name, X)
        texts[name] = poly.error_text().decode()

    threads = [threading.Thread(target=run, args=(f"unknown_{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {f"unknown_{i}": f"op_find: there is no operator named 'unknown_{i}'" for i in range(4)}


# --- wrong arguments from C ---


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("where", r"where: argument .* is missing"),
        ("cat", r"cat: argument 'tensors' must be a list of tensors, found a tensor"),
        ("arange", r"arange"),
    ],
)
def test_a_call_with_wrong_arguments(name, words):
    with pytest.raises(TypeError, match=words):
        call("caller", name, X)


# --- definitions ---


def test_a_second_start_defines_nothing_twice(plugin):
    # Another copy of the library: its start fails at the first operator and leaves nothing behind.
    before = len(tuple(library.operators()))
    with pytest.raises(RuntimeError, match=r"'poly::cube' asked for by poly of the test is defined already"):
        backends.load(plugin("operators"))
    assert len(tuple(library.operators())) == before
    assert call("cube", X).tolist() == (X**3).tolist()


def test_kernels_of_c_and_python_serve_operators_of_each_other():
    with library.Library("mixed") as lib:
        kernel = lib.kernel("poly::nothing", "cpu")(lambda outputs, inputs: inputs[0] * 2)
        assert call("nothing", X).tolist() == (X * 2).tolist()
        kernel.remove()
    with pytest.raises(NotImplementedError, match="no kernel"):
        call("nothing", X)
