"""Calls that are right as they stand, but hardly what was meant, are said."""

import pytest

import taeda_nn as nn
import taeda_nn.functional as F
from taeda_nn import init
from taeda_registry.slots import tensor as t


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: nn.Linear(0, 2), "zero-element tensors is a no-op"),
        (lambda: init.kaiming_uniform_(t.empty(0, 3)), "zero-element tensors is a no-op"),
        (lambda: init.trunc_normal_(t.empty(4), 9.0, 1.0, -1.0, 1.0), "more than 2 std"),
        (lambda: F.dropout2d(t.ones(2, 3, 4)), "3-D input"),
        (lambda: F.dropout2d(t.ones(2, 3)), r"dropout2d: input has shape \(2, 3\)"),
        (lambda: F.dropout3d(t.ones(2, 3, 4)), "dropout3d: input has shape"),
        (lambda: F.gumbel_softmax(t.ones(2, 2), eps=1e-9), "'eps' is deprecated"),
        (
            lambda: F.mse_loss(t.ones(2), t.ones(2), reduction="elementwise_mean"),
            "'elementwise_mean' is deprecated",
        ),
    ],
)
def test_what_is_said(call, match):
    with pytest.warns(UserWarning, match=match):
        call()


def test_masks_of_two_kinds():
    layer, x = nn.MultiheadAttention(4, 2), t.ones(3, 1, 4)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask"):
        layer(x, x, x, key_padding_mask=t.zeros(1, 3, dtype=t.bool), attn_mask=t.zeros(3, 3))
    layer(x, x, x, key_padding_mask=t.zeros(1, 3), attn_mask=t.zeros(3, 3))
