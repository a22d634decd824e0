"""Anomaly mode: NaN is found where it arises, and the traceback of the forward call is shown."""

from __future__ import annotations

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


def test_nan_is_an_error_that_names_the_node_and_the_forward_call(make):
    x = make(2)
    with pytest.raises(RuntimeError, match=r"NanBackward.*nan") as caught, detect_anomaly():
        guilty_line(x).sum().backward()
    assert "guilty_line" in str(caught.value)
    assert x.grad is None


def test_without_the_mode_nan_passes(make):
    x = make(2)
    guilty_line(x).sum().backward()
    assert all(v != v for v in x.grad.tolist())


def test_other_errors_show_the_forward_call_too(make):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("lost")

    def another_line(x):
        return Bad.apply(x)

    x = make(2)
    with (
        pytest.raises(KeyError, match="lost"),
        pytest.warns(UserWarning, match="another_line"),
        detect_anomaly(),
    ):
        another_line(x).sum().backward()


def test_the_mode_ends_with_its_scope(make):
    assert not is_anomaly_enabled()
    with detect_anomaly():
        assert is_anomaly_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()


def test_without_check_nan_only_errors_count(make):
    x = make(2)
    with detect_anomaly(check_nan=False):
        guilty_line(x).sum().backward()
    assert x.grad is not None


def test_right_programs_stay_right(make):
    x = make(3)
    with detect_anomaly():
        (x.exp() * x).sum().backward()
    expected = (x.detach().exp() * (1 + x.detach())).tolist()
    assert x.grad.tolist() == pytest.approx(expected)
    assert taeda.isfinite(x.grad).all()
