"""Weights that are being trained are not kept in a vendor's layout."""

import taeda_tensor_core as taeda
from taeda_tensor_core import _C
from taeda_testing.settling import without_collector


def test_weights_in_training_are_not_kept():
    x = taeda.ones(2, 32, 12, 12).contiguous(memory_format=taeda.channels_last)
    w = taeda.ones(48, 32, 3, 3).requires_grad_()
    with without_collector():
        kept = _C._derived_bytes()
        for _ in range(3):
            taeda.conv2d(x, w).sum().backward()
        assert _C._derived_bytes() == kept
        with taeda.no_grad():
            expected = taeda.conv2d(x, w)
        assert _C._derived_bytes() >= kept
    with taeda.no_grad():
        w -= w.grad
        assert not taeda.equal(taeda.conv2d(x, w), expected)
