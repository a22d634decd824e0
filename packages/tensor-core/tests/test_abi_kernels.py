"""Kernels through the C ABI: put in the cpu's place, refused, failing, and taken away again."""

from __future__ import annotations

import ctypes
import warnings

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library

BASE = taeda.tensor([[0.0, 1.0, 2.0], [-1.0, 0.5, 3.0]])


class Kernels:
    """The controls of abi/kernels.c."""

    def __init__(self, path):
        backends.load(path)
        self.library = ctypes.CDLL(str(path))
        self.library.error_text.restype = ctypes.c_char_p
        self.library.count_calls.restype = ctypes.c_int64

    def put(self, op, kernel="exp_plus", replace=True, status=0):
        return self.library.put(op.encode(), kernel.encode(), int(replace), status)

    def take(self):
        assert self.library.take() == 0

    @property
    def calls(self):
        return self.library.count_calls()

    @property
    def error(self):
        return self.library.error_text().decode()


@pytest.fixture
def kernels(shared_plugin):
    made = Kernels(shared_plugin("kernels"))
    yield made
    made.take()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.exp(),
        lambda x: x.T.exp().T,
        lambda x: x[::-1, ::2].exp(),
        lambda x: x.expand(2, 2, 3).exp(),
        lambda x: x.sum().exp(),
        lambda x: x.clone().exp_(),
        lambda x: taeda.exp(x, out=taeda.empty_like(x)),
        lambda x: taeda.exp(x, out=taeda.empty(4, 6, dtype=x.dtype)[::2, ::-2]),
    ],
    ids=["plain", "transposed", "steps", "expanded", "0-d", "in-place", "out", "out-steps"],
)
def test_a_kernel_in_the_cpus_place_serves_every_form(kernels, form, dtype):
    x = BASE.to(dtype)
    wanted = form(x).numpy() + 100
    before = kernels.calls
    assert kernels.put("exp") == 0
    np.testing.assert_allclose(form(x).numpy(), wanted, rtol=1e-6)
    assert kernels.calls == before + 1
    assert library.op("exp").kernels()["cpu"] == "the kernels of the test"


def test_the_cpus_own_kernel_comes_back(kernels):
    wanted = BASE.exp().tolist()
    assert kernels.put("exp") == 0
    assert BASE.exp().tolist() != wanted
    kernels.take()
    kernels.take()  # gone already: nothing happens
    assert BASE.exp().tolist() == wanted
    assert library.op("exp").kernels()["cpu"] == "taeda-tensor-core"


def test_replacements_lie_on_one_another_in_any_order_of_removal(shared_plugin, plugin):
    wanted = BASE.exp().tolist()
    first, second = Kernels(shared_plugin("kernels")), Kernels(plugin("kernels"))
    assert first.put("exp", "failing", status=4) == 0
    assert second.put("exp") == 0
    assert BASE.exp()[0, 0].item() == 101
    first.take()
    assert BASE.exp()[0, 0].item() == 101
    second.take()
    assert BASE.exp().tolist() == wanted


def test_a_place_that_is_taken_is_refused_naming_both(kernels):
    assert kernels.put("exp", replace=False) == 4
    assert "the kernels of the test registers a kernel for backend 'cpu'" in kernels.error
    assert "registered by taeda-tensor-core" in kernels.error and "kernel_replace" in kernels.error


@pytest.mark.parametrize(
    ("op", "status", "words"),
    [
        ("nobody_has_this", 2, "no operator named 'nobody_has_this'"),
        ("exp_", 2, "'exp_' is a form of another operator"),
        ("exp.out", 2, "'exp.out' is a form of another operator"),
        ("batch_norm", 2, "operators of kind view and composite that write to an argument have no kernels"),
    ],
)
def test_what_has_no_kernels_is_refused(kernels, op, status, words):
    assert kernels.put(op) == status
    assert words in kernels.error


ERRORS = {
    1: TypeError,
    2: ValueError,
    3: IndexError,
    4: RuntimeError,
    5: NotImplementedError,
    6: MemoryError,
    7: ZeroDivisionError,
    8: OverflowError,
    9: BufferError,
    10: RuntimeError,
    77: RuntimeError,
    -3: RuntimeError,
}


@pytest.mark.parametrize(("status", "exception"), ERRORS.items())
def test_a_failure_becomes_the_exception_of_its_status(kernels, status, exception):
    assert kernels.put("exp", "failing", status=status) == 0
    with pytest.raises(exception, match=r"^exp: the device is on fire$") as caught:
        BASE.exp()
    assert type(caught.value).__name__ == exception.__name__  # some are RuntimeErrors too
    kernels.take()
    assert np.isfinite(BASE.exp().numpy()).all()


def test_a_failure_without_a_text_tells_its_status(kernels):
    assert kernels.put("exp", "silent", status=3) == 0
    with pytest.raises(IndexError, match="exp: gave status 3 without a text"):
        BASE.exp()


def test_a_failing_kernel_leaves_the_target_as_it_was(kernels):
    x = BASE.clone()
    version = x._version
    assert kernels.put("exp", "failing", status=2) == 0
    with pytest.raises(ValueError, match="on fire"):
        x.exp_()
    assert x.tolist() == BASE.tolist() and x._version == version


def test_a_direct_kernel_must_store_its_result(kernels):
    assert kernels.put("nonzero", "forgetful") == 0
    with pytest.raises(TypeError, match=r"^nonzero: .* must store a tensor as its result, found nothing"):
        BASE.nonzero()


def test_a_text_belongs_to_the_failure_that_it_was_said_for(kernels):
    assert kernels.put("exp", "probing") == 0
    BASE.exp()
    kernels.take()
    assert kernels.put("exp", "silent", status=2) == 0
    with pytest.raises(ValueError, match=r"^exp: gave status 2 without a text$"):
        BASE.exp()
    assert kernels.put("nobody_has_this", status=2) == 2  # not a callback of ours
    with pytest.raises(ValueError, match=r"^exp: gave status 2 without a text$"):
        BASE.exp()


def test_a_text_that_was_said_with_another_status_is_told(kernels):
    assert kernels.put("exp", "crossed", status=4) == 0
    with pytest.raises(RuntimeError, match=r"^exp: the text that is meant$"):
        BASE.exp()


def test_a_text_that_is_no_utf8_keeps_operator_and_type(kernels):
    assert kernels.put("exp", "latin", status=3) == 0
    with pytest.raises(IndexError, match=r"^exp: the k\ufffdche is on fire$"):
        BASE.exp()


@pytest.mark.parametrize(
    ("kernel", "exception", "words"),
    [
        ("null_handle", TypeError, "must store a tensor as its result, found a null handle"),
        ("borrowing", TypeError, "found an argument without a reference of its own; call tensor_retain"),
        ("sharing", TypeError, "must have dtype int64, found float32"),
        ("halves", TypeError, "must have dtype int64, found float16"),
        ("cube", ValueError, r"must have 2 dimension\(s\), found shape \(2, 3, 4\)"),
        ("elsewhere", RuntimeError, "must be on device 'cpu', found one on 'meta'"),
    ],
)
def test_a_direct_kernel_must_give_what_the_operator_gives(kernels, kernel, exception, words):
    x = BASE.clone()
    assert kernels.put("nonzero", kernel) == 0
    with pytest.raises(exception, match=f"^nonzero: .*{words}") as caught:
        x.nonzero()
    assert "the kernel of the kernels of the test" in str(caught.value)
    kernels.take()
    assert x.tolist() == BASE.tolist() and x.nonzero().shape == (5, 2)


def test_a_direct_kernel_may_give_its_argument_retained(kernels):
    x = BASE.clone()
    assert kernels.put("poisson", "sharing") == 0
    assert taeda.poisson(x).tolist() == BASE.tolist()
    kernels.take()
    assert kernels.put("poisson", "borrowing") == 0
    with pytest.raises(TypeError, match="call tensor_retain before storing it"):
        taeda.poisson(x)
    assert x.tolist() == BASE.tolist()


@pytest.fixture
def deterministic():
    yield taeda.use_deterministic_algorithms
    taeda.use_deterministic_algorithms(False)


def test_a_kernel_that_sums_in_any_order_says_so(kernels, deterministic):
    assert kernels.put("exp", "unordered") == 0
    assert BASE.exp()[0, 0].item() == 101
    deterministic(True)
    with pytest.raises(RuntimeError, match="exp_plus: has no deterministic implementation"):
        BASE.exp()
    deterministic(True, warn_only=True)
    with pytest.warns(UserWarning, match="exp_plus: has no deterministic"):
        assert BASE.exp()[0, 0].item() == 101
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="exp_plus"):
            BASE.exp()


def test_a_kernel_with_a_choice_asks(kernels, deterministic):
    kernels.library.last_choice.restype = ctypes.c_int64
    assert kernels.put("exp", "choosing") == 0
    for wanted in (False, True):
        deterministic(wanted)
        BASE.exp()
        assert kernels.library.last_choice() == wanted
