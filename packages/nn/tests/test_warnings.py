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
        (lambda: nn.Conv2d(0, 2, 1), "zero-element tensors is a no-op"),
        (lambda: nn.InstanceNorm1d(3)(t.ones(2, 4, 5)), "size 4 at dim=1 does not match num_features=3"),
        (lambda: nn.InstanceNorm2d(3)(t.ones(4, 5, 5)), "size 4 at dim=0 does not match"),
        (lambda: nn.utils.clip_grad_norm_((p for p in ()), 1.0), "empty generator"),
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


def test_a_backward_hook_without_gradients_of_inputs():
    layer, seen = nn.Linear(2, 2), []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input))
    with pytest.warns(
        UserWarning, match="backward hook of Linear: called with the gradients of the output alone"
    ):
        layer(t.ones(1, 2)).sum().backward()
    layer(t.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen[0] == (None,) and seen[1][0] is not None
    nn.utils.clip_grad_norm_([], 1.0)
    assert nn.InstanceNorm1d(4)(t.ones(2, 4, 5)).shape == (2, 4, 5)
