"""Anomaly mode: NaN is found where it arises, and the forward call behind a failing backward is shown."""

from __future__ import annotations

import warnings

import pytest

import taeda_tensor_core as taeda
from taeda_autograd import Function, detect_anomaly, is_anomaly_enabled, set_detect_anomaly


class NanBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


def guilty_line(x):
    return NanBackward.apply(x)


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ValueError("broken")


def a_place_to_find(x):
    return Fails.apply(x)


def test_nan_is_an_error_that_names_the_node_and_the_forward_call(make):
    x = make(2)
    with pytest.raises(RuntimeError, match=r"NanBackward.*nan") as caught, detect_anomaly():
        guilty_line(x).sum().backward()
    assert "guilty_line" in str(caught.value)
    assert x.grad is None


def test_nan_names_the_operator():
    x = taeda.tensor([-1.0, 4.0], requires_grad=True)
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.sqrt()
        with pytest.raises(RuntimeError, match=r"SqrtBackward0.*nan"):
            y.sum().backward()
    assert x.grad is None


def test_nan_may_be_allowed_and_is_silent_outside():
    x = taeda.tensor([-1.0, 4.0], requires_grad=True)
    with detect_anomaly(check_nan=False):
        x.sqrt().sum().backward()
    x.sqrt().sum().backward()
    assert x.grad[1].item() == 0.5


def test_error_tells_where_forward_was_called():
    x = taeda.ones(2, requires_grad=True)
    with detect_anomaly(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = a_place_to_find(x)
        with pytest.raises(ValueError, match="broken") as error:
            y.sum().backward()
    told = "\n".join([*(str(w.message) for w in seen), *getattr(error.value, "__notes__", [])])
    assert "FailsBackward" in told and "a_place_to_find" in told


def test_graph_made_outside_has_no_place():
    x = taeda.ones(2, requires_grad=True)
    y = a_place_to_find(x)
    with detect_anomaly(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="broken") as error:
            y.sum().backward()
    told = "\n".join([*(str(w.message) for w in seen), *getattr(error.value, "__notes__", [])])
    assert "a_place_to_find" not in told


def test_mode_is_on_inside_only():
    assert not is_anomaly_enabled()
    with detect_anomaly():
        assert is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()
    with pytest.raises(KeyError), detect_anomaly():
        raise KeyError
    assert not is_anomaly_enabled()


def test_right_programs_stay_right(make):
    x = make(3)
    with detect_anomaly():
        (x.exp() * x).sum().backward()
    expected = (x.detach().exp() * (1 + x.detach())).tolist()
    assert x.grad.tolist() == pytest.approx(expected)
    assert taeda.isfinite(x.grad).all()
