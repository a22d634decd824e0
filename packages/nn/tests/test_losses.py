"""Losses against their definitions in NumPy, with their reductions."""

import numpy as np
import pytest

import taeda_nn as nn
from taeda_nn import functional as F
from taeda_registry.slots import tensor as tt


def log_softmax(x, axis):
    return (
        x
        - x.max(axis, keepdims=True)
        - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))
    )


def check_reductions(close, layer, arguments, each):
    close(layer(reduction="none")(*arguments), each)
    close(layer(reduction="sum")(*arguments), each.sum())
    close(layer()(*arguments), each.mean())
    with pytest.raises(ValueError, match="reduction"):
        layer(reduction="other")(*arguments)


def test_pointwise_losses(rng, to_tensor, close):
    x, y = 2 * rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    d = np.abs(x - y)
    for layer, each in [
        (nn.MSELoss, d * d),
        (nn.L1Loss, d),
        (nn.SmoothL1Loss, np.where(d < 1, d * d / 2, d - 0.5)),
        (nn.HuberLoss, np.where(d <= 1, d * d / 2, d - 0.5)),
    ]:
        check_reductions(close, layer, (to_tensor(x), to_tensor(y)), each)
    beta = F.smooth_l1_loss(to_tensor(x), to_tensor(y), beta=0.0)
    close(beta, d.mean())


def test_binary_losses(rng, to_tensor, close):
    logits, target = 3 * rng.standard_normal((4, 3)), rng.random((4, 3))
    p = 1 / (1 + np.exp(-logits))
    each = -(target * np.log(p) + (1 - target) * np.log(1 - p))
    check_reductions(close, nn.BCELoss, (to_tensor(p), to_tensor(target)), each)
    check_reductions(close, nn.BCEWithLogitsLoss, (to_tensor(logits), to_tensor(target)), each)
    weight = rng.random(3)
    weighted = F.binary_cross_entropy_with_logits(to_tensor(logits), to_tensor(target), to_tensor(weight))
    close(weighted, (each * weight).mean())
    saturated = F.binary_cross_entropy(to_tensor(np.array([0.0, 1.0])), to_tensor(np.array([1.0, 0.0])))
    close(saturated, 100.0)
    with pytest.raises(ValueError, match="same shape"):
        F.binary_cross_entropy(tt.zeros(2), tt.zeros(3))


def test_weights_of_binary_losses_leave_the_dtype():
    x, target = tt.tensor([0.3, 0.6]), tt.tensor([1.0, 0.0])
    for loss in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        found = loss(x, target, weight=tt.tensor([2.0, 0.5], dtype=tt.float64), reduction="none")
        plain = loss(x, target, reduction="none")
        assert found.dtype == tt.float32
        np.testing.assert_allclose(found.tolist(), [2 * plain[0].item(), 0.5 * plain[1].item()], rtol=1e-6)
    wide = F.binary_cross_entropy_with_logits(x, target, pos_weight=tt.tensor([2.0], dtype=tt.float64))
    assert wide.dtype == tt.float32


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_losses_of_logits_have_the_dtype_of_their_targets(dtype, reduction):
    logits, targets = np.array([0.25, -1.5, 3.0]), np.array([1.0, 0.0, 0.5])
    each = np.logaddexp(0, logits) - targets * logits
    expected = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    for of_logits in (tt.float16, tt.float32, tt.float64):
        x, target = tt.tensor(logits, dtype=of_logits), tt.tensor(targets, dtype=getattr(tt, dtype))
        x.requires_grad_()
        for options in ({}, {"weight": tt.ones(3)}, {"pos_weight": tt.ones(3, dtype=tt.float64)}):
            found = F.binary_cross_entropy_with_logits(x, target, reduction=reduction, **options)
            assert found.dtype == target.dtype
            rtol = 1e-2 if "16" in dtype else 1e-3 if of_logits == tt.float16 else 1e-6
            np.testing.assert_allclose(found.double().tolist(), expected, rtol=rtol)
        found.sum().backward()
        assert x.grad.dtype == of_logits


@pytest.mark.parametrize("extra", [(), (2,), (2, 3)])
def test_cross_entropy(rng, to_tensor, close, extra):
    x, target = rng.standard_normal((4, 5, *extra)), rng.integers(0, 5, (4, *extra))
    logs = log_softmax(x, 1)
    each = -np.take_along_axis(logs, target[:, None], 1)[:, 0]
    check_reductions(close, nn.CrossEntropyLoss, (to_tensor(x), to_tensor(target)), each)
    check_reductions(close, nn.NLLLoss, (to_tensor(logs), to_tensor(target)), each)
    weight = rng.random(5)
    weights = np.where(target == 1, 0, weight[target])
    close(
        F.cross_entropy(to_tensor(x), to_tensor(target), to_tensor(weight), ignore_index=1),
        (each * weights).sum() / weights.sum(),
    )
    smooth = F.cross_entropy(to_tensor(x), to_tensor(target), label_smoothing=0.3)
    close(smooth, (0.7 * each - 0.3 * logs.mean(1)).mean())


def test_cross_entropy_of_probabilities(rng, to_tensor, close):
    x, target = rng.standard_normal((4, 5)), rng.random((4, 5))
    each = -(log_softmax(x, 1) * target).sum(1)
    check_reductions(close, nn.CrossEntropyLoss, (to_tensor(x), to_tensor(target)), each)


def test_cross_entropy_gradient(rng, to_tensor, close):
    x, target = rng.standard_normal((4, 5)), rng.integers(0, 5, 4)
    leaf = to_tensor(x, requires_grad=True)
    F.cross_entropy(leaf, to_tensor(target)).backward()
    close(leaf.grad, (np.exp(log_softmax(x, 1)) - np.eye(5)[target]) / 4)


@pytest.mark.filterwarnings("ignore:kl_div")
def test_divergence(rng, to_tensor, close):
    p, q = rng.random((3, 4)), rng.random((3, 4))
    q[0, 0] = 0
    each = np.where(q > 0, q * (np.log(np.where(q > 0, q, 1)) - np.log(p)), 0)
    check_reductions(close, nn.KLDivLoss, (to_tensor(np.log(p)), to_tensor(q)), each)
    close(nn.KLDivLoss(reduction="batchmean")(to_tensor(np.log(p)), to_tensor(q)), each.sum() / 3)


def test_ranking_losses(rng, to_tensor, close):
    a, b = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    sign = np.where(rng.random((4, 3)) > 0.5, 1.0, -1.0)
    hinge = np.where(sign > 0, a, np.maximum(0, 1 - a))
    check_reductions(close, nn.HingeEmbeddingLoss, (to_tensor(a), to_tensor(sign)), hinge)
    margin = np.maximum(0, -sign * (a - b))
    check_reductions(close, nn.MarginRankingLoss, (to_tensor(a), to_tensor(b), to_tensor(sign)), margin)
    soft = np.log1p(np.exp(-sign * a))
    check_reductions(close, nn.SoftMarginLoss, (to_tensor(a), to_tensor(sign)), soft)


def test_deprecated_arguments():
    with pytest.warns(UserWarning, match="deprecated"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="broadcast"):
        F.mse_loss(tt.zeros(3, 1), tt.zeros(3))


@pytest.mark.parametrize(
    "name",
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "soft_margin_loss"],
)
def test_arguments_that_are_no_tensors(name):
    with pytest.raises(TypeError, match=f"{name}: argument 'input' must be a Tensor, found complex"):
        getattr(F, name)(3j, tt.ones(2))
    with pytest.raises(TypeError, match=f"{name}: argument 'target' must be a Tensor, found list"):
        getattr(F, name)(tt.ones(2), [1.0, 1.0])


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_losses_of_classes_name_what_is_no_tensor(name):
    loss, scores, classes = getattr(F, name), tt.ones(3), tt.tensor(1)
    with pytest.raises(TypeError, match=f"{name}: argument 'input' must be a Tensor, found int"):
        loss(1, classes)
    with pytest.raises(TypeError, match=f"{name}.*: argument 'target' must be a Tensor, found list"):
        loss(scores, [1])
    assert loss(scores, classes).dim() == 0


def test_targets_of_soft_margins_are_broadcast():
    x, target = tt.randn(3, 4, requires_grad=True), tt.tensor([1.0, -1.0, 1.0, -1.0])
    whole = target.expand(3, 4)
    for reduction in ("mean", "sum", "none"):
        loss = F.soft_margin_loss(x, target, reduction=reduction)
        assert tt.equal(loss, F.soft_margin_loss(x, whole, reduction=reduction))
    assert loss.shape == (3, 4)
    with pytest.raises(RuntimeError, match="soft_margin_loss"):
        F.soft_margin_loss(x, tt.ones(3))


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("margin_ranking_loss", [(4, 1), (4, 1), (4,)]),
        ("margin_ranking_loss", [(4,), (4, 1), (4,)]),
        ("cosine_embedding_loss", [(4, 3), (4, 3), (4, 1)]),
        ("cosine_embedding_loss", [(4, 3), (3,), (4,)]),
        ("triplet_margin_loss", [(4, 3), (4, 3), (3,)]),
        ("triplet_margin_loss", [(4, 3), (1, 4, 3), (4, 3)]),
    ],
)
def test_rows_are_not_paired_with_all_others(name, shapes):
    with pytest.raises(RuntimeError) as caught:
        getattr(F, name)(*(tt.ones(*shape) for shape in shapes))
    assert str(caught.value).startswith(f"{name}: ")
    assert all(str(shape) in str(caught.value) for shape in shapes)


def test_cosine_embedding_loss_of_a_pair_and_of_one_label_for_all():
    a, b = tt.tensor([3.0, 4.0]), tt.tensor([4.0, 3.0])
    assert F.cosine_embedding_loss(a, b, tt.tensor(1.0)).item() == pytest.approx(0.04)
    rows = F.cosine_embedding_loss(a.expand(2, 2), b.expand(2, 2), tt.tensor([-1.0]), reduction="none")
    assert rows.tolist() == pytest.approx([0.96, 0.96])


def test_nll_loss_needs_a_dimension_of_classes():
    with pytest.raises(ValueError, match="nll_loss: argument 'input' has no dimension"):
        F.nll_loss(tt.tensor(0.0), tt.tensor(0))


@pytest.mark.parametrize("wrong", [[], {}, None, 3, "average"])
def test_choices_that_are_no_texts_are_refused_by_what_there_is(wrong):
    x, grid = tt.ones(1, 1, 2, 2), tt.zeros(1, 1, 1, 2)
    for call, error, words in (
        (lambda: F.l1_loss(x, x, reduction=wrong), ValueError, "l1_loss: reduction must be"),
        (lambda: F.cross_entropy(x, x, reduction=wrong), ValueError, "reduction must be"),
        (
            lambda: F.interpolate(x, 4, mode=wrong),
            NotImplementedError,
            "interpolate: Got 4D input, but mode .* is none of",
        ),
        (lambda: F.grid_sample(x, grid, mode=wrong), ValueError, "grid_sample: expected mode to be one of"),
        (
            lambda: F.grid_sample(x, grid, padding_mode=wrong),
            ValueError,
            "expected padding_mode to be one of",
        ),
        (lambda: nn.init.calculate_gain(wrong), ValueError, "calculate_gain: unknown nonlinearity"),
        (lambda: nn.init.kaiming_normal_(x, mode=wrong), ValueError, "mode must be 'fan_in' or 'fan_out'"),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
def test_losses_of_several_labels_have_the_dtype_of_wider_scores(dtype):
    x, y = tt.tensor([[0.3, -1.0, 2.0]], dtype=tt.float64), tt.tensor([[1, 0, 1]])
    found = F.multilabel_soft_margin_loss(x, y.to(getattr(tt, dtype)))
    expected = F.multilabel_soft_margin_loss(x, y.to(tt.float64))
    assert found.dtype == tt.float64 and abs(found.item() - expected.item()) < 1e-12
