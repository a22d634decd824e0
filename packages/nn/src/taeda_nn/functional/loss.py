"""Loss functions; ``reduction`` is 'mean' (default), 'sum' or 'none'."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, no_grad, op, tensor
from taeda_nn._decompose.loss import reduced
from taeda_nn._errors import not_tensors

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

REDUCTIONS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def reduction_code(name: str, reduction: str) -> int:
    """The number by which operators know a reduction; ValueError for an unknown one."""
    code = REDUCTIONS.get(reduction) if isinstance(reduction, str) else None
    if code is None:
        raise ValueError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    if reduction == "elementwise_mean":
        warnings.warn(f"{name}: reduction='elementwise_mean' is deprecated: use 'mean'", stacklevel=3)
    return code


def legacy_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Translates the deprecated arguments ``size_average`` and ``reduce``."""
    if size_average is None and reduce is None:
        return reduction
    warnings.warn("size_average and reduce are deprecated: use reduction", stacklevel=3)
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _same_shape(name: str, input: Tensor, target: Tensor) -> None:
    try:
        same = tuple(input.shape) == tuple(target.shape)
    except AttributeError:
        raise not_tensors(name, input=input, target=target) from None
    if not same:
        raise ValueError(
            f"{name}: input and target must have the same shape, got {tuple(input.shape)} and {tuple(target.shape)}"
        )


def _warn_broadcast(name: str, input: Tensor, target: Tensor) -> None:
    try:
        same = input.shape == target.shape
    except AttributeError:
        raise not_tensors(name, input=input, target=target) from None
    if not same:
        warnings.warn(
            f"{name}: target {tuple(target.shape)} is broadcast against input {tuple(input.shape)}; "
            "if that is not meant, give them the same shape",
            stacklevel=3,
        )


_mse, _l1 = op("mse_loss"), op("l1_loss")
_smooth_l1, _huber = op("smooth_l1_loss"), op("huber_loss")
_cross_entropy = op("cross_entropy_loss")
_nll = op("nll_loss")
_kl = op("kl_div")
_full_like = op("full_like")
_bce = op("binary_cross_entropy")
_bce_logits = op("binary_cross_entropy_with_logits")
_poisson_nll_loss = op("poisson_nll_loss")
_hinge_embedding_loss = op("hinge_embedding_loss")
_margin_ranking_loss = op("margin_ranking_loss")
_soft_margin_loss = op("soft_margin_loss")
_cosine_embedding_loss = op("cosine_embedding_loss")
_triplet_margin_loss = op("triplet_margin_loss")
_multi_margin_loss = op("multi_margin_loss")
_multilabel_margin_loss = op("multilabel_margin_loss")
_ctc_loss = op("ctc_loss")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy of unnormalised scores and classes.

    Args:
        input: Scores, (C,), (N, C) or (N, C, d1, ...).
        target: Classes (int64; the shape without C) or probabilities (``input``'s shape).
        weight: Weight of every class, (C,).
        size_average: Deprecated.
        ignore_index: Class that does not count.
        reduce: Deprecated.
        reduction: 'mean' divides by the sum of the targets' weights.
        label_smoothing: Share of the target spread evenly over all classes.

    Example:
        >>> F.cross_entropy(torch.tensor([[0.0, 2.0], [1.0, 1.0]]), torch.tensor([1, 0]))
        tensor(0.4100376)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    code = REDUCTIONS.get(reduction) if isinstance(reduction, str) else None
    if code is None:
        code = reduction_code("cross_entropy", reduction)
    try:
        if input.dim() == 1:
            target = _single_class(target)
    except AttributeError:
        raise not_tensors("cross_entropy", input=input, target=target) from None
    return _cross_entropy(input, target, weight, code, ignore_index, label_smoothing)


def _single_class(target: Tensor) -> Tensor:
    """The class of one sample without a batch, which may be given as a list of one."""
    is_listed = target.dim() == 1 and len(target) == 1 and not target.is_floating_point()
    return target.reshape(()) if is_listed else target


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood: minus the log-probability of the target class; arguments as ``cross_entropy``.

    Example:
        >>> F.nll_loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([1]))
        tensor(0.2876821)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce, reduction)
    try:
        if input.dim() == 1:
            target = _single_class(target)
    except AttributeError:
        raise not_tensors("nll_loss", input=input, target=target) from None
    return _nll(input, target, weight, reduction_code("nll_loss", reduction), ignore_index)


def _weighted(name: str, loss: Callable[[int], Tensor], weight: Tensor | None, reduction: str) -> Tensor:
    code = reduction_code(name, reduction)
    if weight is None:
        return loss(code)
    values = loss(0) * weight
    return values.sum() / weight.expand(values.shape).sum() if code == 1 else reduced(values, code)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared difference.

    Example:
        >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor(2.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _warn_broadcast("mse_loss", input, target)
    return _weighted("mse_loss", lambda code: _mse(input, target, code), weight, reduction)


def _l1_of(input: Tensor, target: Tensor, code: int) -> Tensor:
    """Absolute differences, reduced as the code says; of complex numbers in two steps."""
    if not (input.is_complex() or target.is_complex()):
        return _l1(input, target, code)
    return reduced((input - target).abs(), code)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute difference.

    Example:
        >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor(1.5000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _warn_broadcast("l1_loss", input, target)
    return _weighted("l1_loss", lambda code: _l1_of(input, target, code), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the squared difference over ``beta`` where the difference is below ``beta``, else linear.

    Example:
        >>> F.smooth_l1_loss(torch.tensor([0.5, 2.0]), torch.tensor([0.0, 0.0]))
        tensor(0.8125)
    """
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    reduction = legacy_reduction(size_average, reduce, reduction)
    _warn_broadcast("smooth_l1_loss", input, target)
    code = reduction_code("smooth_l1_loss", reduction)
    return _l1(input, target, code) if beta == 0 else _smooth_l1(input, target, code, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference up to ``delta``, linear beyond.

    Example:
        >>> F.huber_loss(torch.tensor([0.5, 2.0]), torch.tensor([0.0, 0.0]))
        tensor(0.8125)

    Source: Huber, "Robust Estimation of a Location Parameter", 1964.
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta must be positive, got {delta}")
    _warn_broadcast("huber_loss", input, target)
    return _weighted("huber_loss", lambda code: _huber(input, target, code, delta), weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of probabilities and targets in [0, 1]; logarithms are limited to -100.

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.5, 0.75]), torch.tensor([1.0, 1.0]))
        tensor(0.49041462)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _same_shape("binary_cross_entropy", input, target)
    if weight is not None:
        weight = weight.expand(target.shape)
    return _bce(input, target, weight, reduction_code("binary_cross_entropy", reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of logits and targets in [0, 1], computed stably; ``pos_weight`` multiplies the positives.

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))
        tensor(0.41003758)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _same_shape("binary_cross_entropy_with_logits", input, target)
    code = reduction_code("binary_cross_entropy_with_logits", reduction)
    return _bce_logits(input, target, weight, pos_weight, code)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback-Leibler divergence of log-probabilities ``input`` from ``target``; 'batchmean' divides by N.

    Example:
        >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
        >>> F.kl_div(q.log(), p, reduction="sum")
        tensor(0.14384104)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "batchmean":
        total = _kl(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    if reduction == "mean":
        warnings.warn("kl_div: 'mean' divides by all elements; 'batchmean' is the divergence", stacklevel=2)
    return _kl(input, target, reduction_code("kl_div", reduction), log_target=log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of counts; ``full`` adds Stirling's approximation of log(target!)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    code = reduction_code("poisson_nll_loss", reduction)
    return _poisson_nll_loss(input, target, log_input, full, eps, code)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of normal targets with mean ``input`` and variance ``var`` (at least ``eps``)."""
    negative = bool((var < 0).any()) if isinstance(var, Tensor) else var < 0
    if negative:
        raise ValueError("gaussian_nll_loss: var must not be negative")
    if not isinstance(var, Tensor):
        var = _full_like(input, var)
    if var.dim() == input.dim() - 1 and tuple(var.shape) == tuple(input.shape[:-1]):
        var = var.unsqueeze(-1)
    elif var.dim() != input.dim() or any(
        n not in (1, m) for n, m in zip(var.shape, input.shape, strict=True)
    ):
        raise ValueError(
            f"gaussian_nll_loss: argument 'var' has shape {tuple(var.shape)}, expected that of 'input', "
            f"{tuple(input.shape)}, or 1 where it is the same for all"
        )
    # The limit changes the value but lets the gradient pass.
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) * (input - target) / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction_code("gaussian_nll_loss", reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _hinge_embedding_loss(input, target, margin, reduction_code("hinge_embedding_loss", reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin), for tensors of as many dimensions."""
    try:
        same = input1.dim() == input2.dim() == target.dim()
    except AttributeError:
        raise not_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target) from None
    if not same:
        raise RuntimeError(
            f"margin_ranking_loss: arguments 'input1', 'input2' and 'target' have shapes {tuple(input1.shape)}, "
            f"{tuple(input2.shape)} and {tuple(target.shape)}, expected as many dimensions"
        )
    reduction = legacy_reduction(size_average, reduce, reduction)
    code = reduction_code("margin_ranking_loss", reduction)
    return _margin_ranking_loss(input1, input2, target, margin, code)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * x)) for targets 1 and -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _soft_margin_loss(input, target, reduction_code("soft_margin_loss", reduction))


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    code = reduction_code("cosine_embedding_loss", reduction)
    return _cosine_embedding_loss(input1, input2, target, margin, code)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with p-norm distances."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    code = reduction_code("triplet_margin_loss", reduction)
    return _triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the other classes of max(0, margin - x[target] + x[class])^p; input (N, C), (C,) or ()."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    code = reduction_code("multi_margin_loss", reduction)
    return _multi_margin_loss(input, target, p, margin, weight, code)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes of the binary cross-entropy of logits; input and target (N, C) or (C,)."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if (
        target.is_floating_point() and input.element_size() > target.element_size()
    ):  # the result has the wider dtype
        target = target.to(input.dtype)
    loss = _bce_logits(input, target, weight, None, 0).mean(-1)
    return reduced(loss, reduction_code("multilabel_soft_margin_loss", reduction))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum over targets t and other classes c of max(0, 1 - (x[t] - x[c])) / C.

    Args:
        input: Scores (N, C), (C,) or ().
        target: Class indices of the same shape; those up to the first -1 count.
        reduction: 'mean', 'sum' or 'none'.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    return _multilabel_margin_loss(input, target, reduction_code("multilabel_margin_loss", reduction))


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with any distance d, by default the Euclidean one.

    Args:
        anchor, positive, negative: Of one number of dimensions.
        distance_function: d; ``pairwise_distance`` by default.
        margin: Must be positive.
        swap: Whether the smaller of d(anchor, negative) and d(positive, negative) counts.
        reduction: 'mean', 'sum' or 'none'.
    """
    name = "triplet_margin_with_distance_loss"
    code = reduction_code(name, reduction)
    if margin <= 0:
        raise ValueError(f"{name}: margin must be greater than 0, got {margin}")
    ranks = anchor.dim(), positive.dim(), negative.dim()
    if len(set(ranks)) != 1:
        raise RuntimeError(
            f"{name}: anchor, positive and negative must have the same number of dimensions, got {ranks}"
        )
    distance = F.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = tensor.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp(min=0), code)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: minus the log-probability of the targets, over all alignments.

    Args:
        log_probs: (T, N, C) or (T, C), a log_softmax along C.
        targets: (N, S), or the targets of a batch one after the other; class indices other than ``blank``.
        input_lengths, target_lengths: (N,) or (), tensors or sequences of ints.
        blank: Class of the blank.
        reduction: 'mean' (losses over target lengths, then their mean), 'sum' or 'none'.
        zero_infinity: Whether infinite losses, of targets too long for their input, and their gradients become 0.

    Returns: () or, without reduction, (N,).

    Example:
        >>> scores = torch.zeros(4, 1, 3).log_softmax(2)
        >>> F.ctc_loss(scores, torch.tensor([[1, 2]]), (4,), (2,))
        tensor(0.8431995)

    Source: Graves et al., "Connectionist Temporal Classification", 2006.
    """
    code = reduction_code("ctc_loss", reduction)
    return _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code, zero_infinity)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: (N, in_features) or (in_features,).
        linear_weight: (C, in_features), or (C, d1, ..., in_features) for scores (N, C, d1, ...).
        target: Class indices (N, d1, ...) or (), or probabilities of the shape of the scores.
        linear_bias: (C, d1, ...).
        weight: Weight of every class, (C,).
        reduction: 'mean', 'sum' or 'none'.
        ignore_index: Class that does not count; None stands for -100, for targets of classes.
        label_smoothing: Share of the target spread evenly over all classes.
        options: `nn.LinearCrossEntropyOptions`: the batch is gone through in pieces, so that only the scores of one
            exist at a time; for targets of classes without smoothing and dimensions. Second derivatives need None.

    Raises:
        RuntimeError: Shapes that do not fit.
    """
    name = "linear_cross_entropy"
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"{name}: expected input with dimensionality 1 or 2, got shape {tuple(input.shape)}"
        )
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"{name}: expected linear_weight with dimensionality at least 2, got shape {tuple(linear_weight.shape)}"
        )
    classes, *between, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            f"{name}: expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and "
            f"{features}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *between):
        raise RuntimeError(
            f"{name}: expected linear_bias shape {(classes, *between)}, got {tuple(linear_bias.shape)}"
        )
    if between and input.dim() == 1:
        raise RuntimeError(
            f"{name}: linear_weight of shape {tuple(linear_weight.shape)} requires batched input, got shape "
            f"{tuple(input.shape)}"
        )
    scores_shape = (*input.shape[:-1], classes, *between)
    if tuple(target.shape) == scores_shape and ignore_index is not None:
        raise RuntimeError(f"{name}: ignore_index cannot be specified when target contains probabilities")
    if input.dim() == 2 and target.dim() and target.shape[0] != input.shape[0]:
        raise ValueError(
            f"{name}: Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]})"
        )
    left_out = -100 if ignore_index is None else ignore_index
    if options is not None:
        from taeda_nn.functional._chunked import chunked_cross_entropy

        if not between and label_smoothing == 0 and not target.is_floating_point():
            code = reduction_code(name, reduction)
            return chunked_cross_entropy(
                input, linear_weight, target, linear_bias, weight, code, left_out, options
            )
        warnings.warn(
            f"{name}: options are ignored for label_smoothing, targets of probabilities and out_features",
            stacklevel=2,
        )
    if between:
        linear_weight = linear_weight.reshape(-1, features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = F.linear(input, linear_weight, linear_bias).reshape(scores_shape)
    return F.cross_entropy(
        scores,
        target,
        weight,
        reduction=reduction,
        ignore_index=left_out,
        label_smoothing=label_smoothing,
    )
