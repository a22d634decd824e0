"""Layers through the C ABI: an observer of all calls, and layers that change, answer or refuse them."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library

AUTOGRAD, OBSERVER, STEPPER = 0, 12, 6
X = taeda.tensor([1.0, -2.0, 3.0, 4.0])
Y = taeda.ones(3)


class Layers:
    """The controls of abi/observer.c; switches on what it puts into the table."""

    def __init__(self, path):
        backends.load(path)
        self.library = ctypes.CDLL(str(path))
        self.library.error_text.restype = self.library.read_journal.restype = ctypes.c_char_p

    def put(self, layer, op=None, position=STEPPER):
        return self.library.put(op and op.encode(), layer.encode(), position)

    def turn(self, position, on):
        return self.library.turn(position, int(on))

    @property
    def journal(self):
        return self.library.read_journal().decode().split("\n")[:-1]

    @property
    def error(self):
        return self.library.error_text().decode()


@pytest.fixture
def layers(shared_plugin):
    made = Layers(shared_plugin("observer"))
    made.library.read_journal()  # what an earlier test left
    yield made
    for position in (OBSERVER, STEPPER):
        made.turn(position, False)
    for observer in (0, 1):
        assert made.library.take(observer) == 0


@pytest.fixture
def observed(layers):
    assert layers.put("observe", position=OBSERVER) == 0
    assert layers.turn(OBSERVER, True) == 100
    return layers


@pytest.fixture
def stepping(layers):
    def put(layer, op):
        assert layers.put(layer, op) == 0
        assert layers.turn(STEPPER, True) == 100

    layers.step = put
    return layers


def test_an_observer_sees_calls_in_all_forms_and_lets_them_on(observed):
    y = X.clone()
    y.add_(X, alpha=2)
    taeda.mul(X, 3, out=y)
    parts = y.split(3)
    same = taeda.equal(X, X)
    assert (y.tolist(), [p.tolist() for p in parts], same) == (
        [3, -6, 9, 12],
        [[3, -6, 9], [12]],
        True,
    )
    # What a call is made of runs below the layer and is not seen.
    assert observed.journal == ["clone 2->1", "add_ 3->0", "mul.out 3->0", "split 3->2", "equal 2->1"]


def test_failures_pass_the_observer_unchanged(observed):
    with pytest.raises(RuntimeError, match=r"^add: .*\(4,\)") as watched:
        X + Y
    assert observed.journal == ["add 3->0 failed"]
    observed.turn(OBSERVER, False)
    with pytest.raises(RuntimeError) as plain:
        X + Y
    assert str(watched.value) == str(plain.value)


def test_a_layer_is_on_for_the_thread_that_switched_it_on(observed):
    thread = threading.Thread(target=lambda: X + X)
    thread.start()
    thread.join()
    assert observed.journal == []
    X + X
    assert observed.journal == ["add 3->1"]
    assert observed.turn(OBSERVER, False) == 101
    X + X
    assert observed.journal == []


def test_composites_and_new_tensors_are_observed_too(observed):
    X.sort(), X.max(0), taeda.cat([X, X]), X.std(), taeda.zeros(2)
    assert observed.journal == ["sort 4->2", "max.dim 3->2", "cat 2->1", "std 5->1", "zeros 4->1"]


def test_a_layer_may_change_what_goes_down(stepping):
    stepping.step("twice", "exp")
    assert X.exp().tolist() == pytest.approx(np.exp(2 * X.numpy()).tolist(), rel=1e-6)
    assert X.sum().item() == 6


def test_a_layer_may_answer_itself(stepping):
    stepping.step("same", "exp")
    assert X.exp().tolist() == X.tolist()


def test_a_layer_may_refuse(stepping):
    stepping.step("refuse", "exp")
    with pytest.raises(IndexError, match=r"^exp: no calls today$"):
        X.exp()
    assert (X * 1).tolist() == X.tolist()


def test_a_layer_that_stores_nothing_is_named(stepping):
    stepping.step("forget", "exp")
    with pytest.raises(TypeError, match=r"exp: the plug-in's function must store .* found nothing"):
        X.exp()


def test_a_layer_must_store_each_of_several_results(stepping):
    stepping.step("forget", "max.dim")
    with pytest.raises(TypeError, match=r"max.dim: .* a tensor as result 'values', found nothing .*the test"):
        X.max(0)


def test_a_layer_must_not_leave_out_one_of_two_results(stepping):
    stepping.step("halfway", "sort")
    with pytest.raises(TypeError, match=r"sort: .* a tensor as result 'values', found nothing .*the test"):
        X.sort()


def test_a_layer_must_answer_on_the_device_of_the_call(stepping):
    stepping.step("elsewhere", "exp")
    with pytest.raises(
        RuntimeError,
        match=r"exp: result 'result' of the layer of the layers of the test must be on .*'cpu', .*'meta'",
    ):
        X.exp()


def test_lists_pass_through_a_layer(stepping):
    stepping.step("reverse", "split")
    assert [part.tolist() for part in X.split(2)] == [[3, 4], [1, -2]]


def test_a_list_that_is_not_taedas_is_refused(stepping):
    stepping.step("stack_list", "split")
    with pytest.raises(TypeError, match="must store a list that value_tensors made"):
        X.split(2)


def test_layers_above_are_met_first(observed):
    assert observed.put("refuse", "exp") == 0
    observed.turn(STEPPER, True)
    with pytest.raises(IndexError, match="no calls today"):
        X.exp()
    assert observed.journal == ["exp 1->0 failed"]


@pytest.mark.parametrize("position", [-1, 16])
def test_positions_are_checked(layers, position):
    assert layers.put("observe", "exp", position) == 2
    assert f"position must be from 0 to 15, found {position}" in layers.error
    assert layers.turn(position, True) == 2


def test_an_unknown_operator_is_refused(layers):
    assert layers.put("observe", "nobody_has_this") == 2
    assert "no operator named 'nobody_has_this'" in layers.error


def test_a_place_that_is_taken_is_refused_and_leaves_nothing_behind(observed, plugin):
    # The position of automatic differentiation takes one layer.
    library.Library("layertest").operator("layertest::alone(Tensor self) -> Tensor")(lambda self: self)
    assert observed.put("same", "layertest::alone", AUTOGRAD) == 0
    assert observed.put("refuse", "layertest::alone", AUTOGRAD) == 4
    assert "layertest::alone: the layers of the test registers an entry for layer 0" in observed.error
    assert "registered by the layers of the test" in observed.error
    # One of all operators is taken: none of the others gets an entry.
    other = Layers(plugin("observer"))
    assert other.put("observe", position=AUTOGRAD) == 4
    observed.turn(AUTOGRAD, True)
    X.cos()
    observed.turn(AUTOGRAD, False)
    assert other.journal == []


def test_the_last_of_several_layers_is_met_first(layers):
    assert layers.put("observe", "exp") == 0
    assert layers.put("twice", "exp") == 0
    layers.turn(STEPPER, True)
    result = X.exp()
    layers.turn(STEPPER, False)
    assert np.allclose(result.numpy(), np.exp(2 * X.numpy()), rtol=1e-6)
    assert layers.journal == ["exp 1->1"]


def test_what_is_removed_is_seen_no_more(observed):
    assert observed.library.take(1) == 0
    X + X
    assert observed.journal == []
