"""Weights of convolutions in a vendor's layout: computed once while they stay the same, never used when they do not."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import _C
from taeda_testing.settling import without_collector


@pytest.fixture(autouse=True)
def frozen():
    """No gradients, and nothing kept from before."""
    limit = 512 << 20
    _C._set_derived_limit(0)
    _C._set_derived_limit(limit)
    with taeda.no_grad():
        yield
    _C._set_derived_limit(limit)


def images(seed=3, channels=32):
    x = np.random.default_rng(seed).standard_normal((2, channels, 12, 12)).astype("float32")
    return taeda.tensor(x).contiguous(memory_format=taeda.channels_last)


def weights(seed=4, outputs=48, channels=32):
    return taeda.tensor(
        np.random.default_rng(seed).standard_normal((outputs, channels, 3, 3)).astype("float32")
    )


def reordered(function):
    """How often weights were brought to another layout in a call, and its result."""
    before = _C._derivations()
    result = function()
    return _C._derivations() - before, result


@pytest.fixture(scope="module", autouse=True)
def _vendor():
    with taeda.no_grad():
        if reordered(lambda: taeda.conv2d(images(), weights()))[0] == 0:
            pytest.skip("built without oneDNN, or it takes these weights as they are")


X = images()


def right(w, x=X):
    """The convolution, held to that of a copy of the weights."""
    found = taeda.conv2d(x, w)
    assert taeda.equal(found, taeda.conv2d(x, w.clone()))
    return found


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16])
@pytest.mark.parametrize("channels_last", [False, True])
def test_frozen_weights_are_reordered_once(dtype, channels_last):
    w, x = weights().to(dtype), X.to(dtype)
    if channels_last:
        w = w.contiguous(memory_format=taeda.channels_last)
    first, expected = reordered(lambda: taeda.conv2d(x, w))
    assert first == 1
    for _ in range(5):
        again, found = reordered(lambda: taeda.conv2d(x, w))
        assert again == 0
        assert taeda.equal(found, expected)
    right(w, x)


def test_a_gradient_through_frozen_weights_keeps_its_own_layout():
    w, grad = weights(), taeda.ones(2, 48, 10, 10)

    def gradient():
        return taeda.ops.conv2d_backward(grad, X, w, [1], [0], [1], 1, 1)[0]

    assert reordered(gradient)[0] <= 1
    again, found = reordered(gradient)
    assert again == 0
    expected = taeda.ops.conv2d_backward(grad, X, w.clone(), [1], [0], [1], 1, 1)[0]
    assert taeda.equal(found, expected)


WRITES = {
    "in place": lambda w: w.mul_(2),
    "copy_": lambda w: w.copy_(weights(9)),
    "an element": lambda w: w.__setitem__((3, 2, 1, 0), 77.0),
    "a view": lambda w: w[5].zero_(),
    "detach": lambda w: w.detach().add_(1),
    "fill_": lambda w: w.fill_(0.25),
    "data": lambda w: w.data.mul_(3),
    "a view of data": lambda w: w.data[2:4].zero_(),
    "numpy": lambda w: np.multiply(w.numpy(), 2, out=w.numpy()),
    "dlpack": lambda w: np.from_dlpack(w).__imul__(2),
    "buffer": lambda w: memoryview(w.numpy()).cast("B").cast("f").__setitem__(0, 5.0),
    "address": lambda w: ctypes.memset(w.data_ptr(), 0, 4096),
    "address of the storage": lambda w: ctypes.memset(w.untyped_storage().data_ptr(), 0, 4096),
    "array interface": lambda w: ctypes.memset(w.numpy().__array_interface__["data"][0], 0, 4096),
    "set_": lambda w: w.set_(weights(11)),
    "data =": lambda w: setattr(w, "data", weights(12)),
    "out=": lambda w: taeda.mul(weights(13), 2, out=w),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_no_write_goes_unseen(write):
    w = weights()
    before = right(w)
    right(w)
    write(w)
    after = right(w)
    assert not taeda.equal(before, after)
    right(w)
    w.mul_(0.5)
    right(w)


HOLDERS = {
    "data": lambda w: w.data,
    "numpy": lambda w: w.numpy(),
    "address": lambda w: (ctypes.c_float * w.numel()).from_address(w.data_ptr()),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS.keys())
def test_whoever_could_write_unseen_may_do_so_at_any_time(hold):
    w = weights()
    held = hold(w)
    for factor in (2.0, 3.0):
        before = right(w)
        if isinstance(held, taeda.Tensor):
            held.mul_(factor)
        else:
            np.multiply(held, factor, out=np.asarray(held))
        assert not taeda.equal(before, right(w))


def test_exports_and_data_that_are_gone_are_no_hindrance():
    w = weights()
    w.numpy()
    w.data  # noqa: B018
    taeda.conv2d(X, w)
    assert reordered(lambda: taeda.conv2d(X, w))[0] == 0


def test_a_part_of_larger_weights():
    whole = weights(outputs=96)
    for part in (whole[:48], whole[48:]):
        right(part)
        right(part)
    whole[:48].mul_(2)
    right(whole[:48])


def test_what_is_kept_goes_with_the_weights():
    with without_collector():
        live = _C._live_bytes()
        w = weights()
        taeda.conv2d(X, w)
        assert _C._derived_bytes() >= w.nbytes
        del w
        assert _C._derived_bytes() == 0
        assert _C._live_bytes() == live


def test_what_is_kept_is_bounded():
    many = [weights(seed) for seed in range(8)]
    size = many[0].nbytes
    _C._set_derived_limit(3 * size + size // 2)
    expected = [taeda.conv2d(X, w.clone()) for w in many]
    for _ in range(2):
        for w, want in zip(many, expected, strict=True):
            assert taeda.equal(taeda.conv2d(X, w), want)
            assert _C._derived_bytes() <= 3 * size + size // 2
    assert _C._derived_bytes() >= size
    assert reordered(lambda: taeda.conv2d(X, many[-1]))[0] == 0


def test_sizes_of_images_do_not_pile_up():
    w = weights()
    for side in range(6, 40):
        right(w, taeda.ones(1, 32, side, side).contiguous(memory_format=taeda.channels_last))
    assert _C._derived_bytes() <= 4 * 2 * w.nbytes


def test_threads_share_what_is_kept():
    w = weights()
    expected = taeda.conv2d(X, w.clone())
    wrong = []

    def work():
        with taeda.no_grad():
            for i in range(200):
                if not taeda.equal(taeda.conv2d(X, w), expected):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        w.numpy()
        w.data  # noqa: B018
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_fork_has_its_own():
    w = weights()
    expected = taeda.conv2d(X, w)
    child = os.fork()
    if child == 0:
        same = taeda.equal(taeda.conv2d(X, w), taeda.conv2d(X, w.clone()))
        w.mul_(2)
        os._exit(0 if same and taeda.equal(taeda.conv2d(X, w), taeda.conv2d(X, w.clone())) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    again, found = reordered(lambda: taeda.conv2d(X, w))
    assert again == 0
    assert taeda.equal(found, expected)
