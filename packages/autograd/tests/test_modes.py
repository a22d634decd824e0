"""no_grad, enable_grad, set_grad_enabled and inference_mode: as scopes, decorators, in generators and threads."""

from __future__ import annotations

import threading

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled


@pytest.fixture(autouse=True)
def _recording_stays_on():
    assert is_grad_enabled()
    yield
    assert is_grad_enabled()


def recorded(x) -> bool:
    return (x * 2).requires_grad


def test_scopes_nest_and_end_with_errors(make):
    x = make(2)
    with no_grad():
        assert not recorded(x)
        with enable_grad():
            assert recorded(x)
            with pytest.raises(KeyError), no_grad():
                raise KeyError
            assert recorded(x)
        assert not recorded(x)
    assert recorded(x)


@pytest.mark.parametrize("mode", [no_grad(), no_grad, inference_mode(), inference_mode])
def test_decorators(mode, make):
    x = make(2)

    @mode
    def inside(factor):
        return (x * factor).requires_grad

    assert inside.__name__ == "inside"
    assert inside(3) is False and inside(factor=2) is False
    assert recorded(x)


def test_a_generator_has_the_mode_only_while_it_runs(make):
    x = make(2)

    @no_grad()
    def numbers():
        got = yield recorded(x)
        try:
            yield got
        except ValueError:
            yield recorded(x)
        return 5

    g = numbers()
    assert next(g) is False and recorded(x)
    assert g.send("sent") == "sent" and recorded(x)
    assert g.throw(ValueError()) is False and recorded(x)
    with pytest.raises(StopIteration) as end:
        next(g)
    assert end.value.value == 5


def test_set_grad_enabled_as_a_call(make):
    x = make(2)
    set_grad_enabled(False)
    try:
        assert not recorded(x)
    finally:
        set_grad_enabled(True)
    assert recorded(x)


def test_every_thread_has_its_own_mode(make):
    x, seen = make(2), []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(recorded(x)))
        thread.start()
        thread.join()
        assert not recorded(x)
    assert seen == [True]


def test_new_leaves_under_no_grad(make):
    with no_grad():
        x = taeda.ones(2, requires_grad=True)
        y = x * 2
    assert x.requires_grad and not y.requires_grad
    assert recorded(x)


def test_inference_tensors(make):
    x = make(2)
    with inference_mode():
        y = x * 2
        view_of_normal = x[0]
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
    assert not view_of_normal.is_inference()
    assert y[0].is_inference() and not y.clone().is_inference()
    with pytest.raises(RuntimeError, match=r"MulBackward0.*inference_mode.*clone"):
        x * y
    with pytest.raises(RuntimeError, match=r"requires_grad_.*inference_mode"):
        y.requires_grad_()
    (x * y.clone()).sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert (x + y).requires_grad  # nothing is saved for the gradient of a sum


def test_inference_mode_can_be_switched_off(make):
    x = make(2)
    with inference_mode(), inference_mode(False):
        assert recorded(x) and not (x * 2).is_inference()
