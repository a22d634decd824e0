"""Layers where nothing is attended to, where nothing changes, and where margins are met exactly."""

from __future__ import annotations

import math

import pytest

import taeda
from taeda.nn import functional as F


def masks(dead):
    """The same mask as truth and as numbers to be added; row `dead` sees nothing."""
    allowed = taeda.ones(3, 4, dtype=taeda.bool)
    allowed[dead] = False
    yield allowed
    yield taeda.zeros(3, 4).masked_fill(~allowed, -math.inf)


@pytest.mark.parametrize("dead", [0, 2])
def test_a_query_that_may_see_nothing_gives_zero(dead):
    taeda.manual_seed(3)
    for mask in masks(dead):
        q, k, v = (taeda.randn(n, 2, requires_grad=True) for n in (3, 4, 4))
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert out[dead].tolist() == [0, 0]
        others = [i for i in range(3) if i != dead]
        rest = F.scaled_dot_product_attention(q[others], k, v)
        assert taeda.allclose(out[others], rest)
        grads = taeda.autograd.grad(out.sum(), (q, k, v))
        expected = taeda.autograd.grad(rest.sum(), (q, k, v))
        for found, wanted in zip(grads, expected, strict=True):
            assert taeda.allclose(found, wanted)


@pytest.mark.parametrize("function", [F.pixel_shuffle, F.pixel_unshuffle])
def test_shuffling_by_one_gives_a_copy(function):
    x = taeda.arange(8.0).reshape(1, 2, 2, 2)
    made = function(x, 1)
    x.zero_()
    assert made.reshape(-1).tolist() == list(range(8))


def test_a_margin_that_is_met_exactly_pushes_nothing():
    x = taeda.tensor([[1.0, 0.0, 3.0, -5.0]], requires_grad=True)
    F.multi_margin_loss(x, taeda.tensor([0])).backward()
    assert x.grad.tolist() == [[-0.25, 0, 0.25, 0]]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
def test_a_sample_without_a_batch_takes_a_list_of_one_class(function, reduction):
    x = taeda.tensor([0.1, -0.4, 0.7])
    listed = function(x, taeda.tensor([2]), reduction=reduction)
    assert listed.shape == () and listed.item() == function(x, taeda.tensor(2), reduction=reduction).item()
    with pytest.raises(RuntimeError, match=r"'target' has shape \(2,\)"):
        function(x, taeda.tensor([2, 1]), reduction=reduction)


def test_margins_of_single_samples_have_the_targets_shape():
    x = taeda.tensor([0.1, -0.4, 0.7])
    assert F.multi_margin_loss(x, taeda.tensor(2), reduction="none").shape == ()
    listed = F.multi_margin_loss(x, taeda.tensor([2]), reduction="none")
    assert listed.shape == (1,) and listed.item() == F.multi_margin_loss(x, taeda.tensor(2)).item()
    probabilities = taeda.tensor([1.0])
    assert F.cross_entropy(taeda.tensor([0.3]), probabilities).item() == 0.0


@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 4), (2, 3, 0, 5)])
def test_norms_of_nothing_leave_their_parameters_without_a_gradient(shape):
    kinds = {3: taeda.nn.InstanceNorm1d, 4: taeda.nn.InstanceNorm2d}
    for layer in (kinds[len(shape)](3, affine=True), taeda.nn.GroupNorm(3, 3), taeda.nn.GroupNorm(1, 3)):
        x = taeda.ones(shape, requires_grad=True)
        layer(x).sum().backward()
        assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0.0, 0.0, 0.0]
        assert x.grad.shape == shape
