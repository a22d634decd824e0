"""Losses in terms of arithmetic; ``reduction`` is 0 for none, 1 for the mean and 2 for the sum."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, op, tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "hinge_embedding_loss",
    "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """All losses, their mean or their sum."""
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()


def mse_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return reduced((input - target) * (input - target), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return reduced((input - target).abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    distance = (input - target).abs()
    loss = tensor.where(distance < beta, 0.5 * distance * distance / (beta or 1.0), distance - 0.5 * beta)
    return reduced(loss, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    distance = (input - target).abs()
    near, far = 0.5 * distance * distance, delta * (distance - 0.5 * delta)
    return reduced(tensor.where(distance <= delta, near, far), reduction)


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    if log_target:
        return reduced(target.exp() * (target - input), reduction)
    positive = target > 0
    logs = tensor.where(positive, target, tensor.ones_like(target)).log()
    return reduced(
        tensor.where(positive, target * (logs - input), tensor.zeros_like(target) * input), reduction
    )


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    loss = -(target * input.log().clamp(min=-100) + (1 - target) * (1 - input).log().clamp(min=-100))
    return reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    softplus = op("softplus")
    weighted = target if pos_weight is None else pos_weight * target
    loss = (1 - target) * softplus(input, 1.0, 20.0) + weighted * softplus(-input, 1.0, 20.0)
    return reduced(loss if weight is None else loss * weight, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: int = 1,
) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        safe = target.clamp(min=1)
        stirling = safe * safe.log() - safe + 0.5 * (2 * math.pi * safe).log()
        loss = loss + tensor.where(target > 1, stirling, tensor.zeros_like(stirling))
    return reduced(loss, reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    zero = tensor.zeros_like(input)
    positive = tensor.where(target == -1, zero, input)
    negative = tensor.where(target == 1, zero, (margin - input).clamp(min=0))
    return reduced(positive + negative, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return reduced(op("softplus")(-target * input, 1.0, 20.0), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    eps = 1e-12
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    zero = tensor.zeros_like(cosine)
    positive = tensor.where(target == 1, 1 - cosine, zero)
    negative = tensor.where(target == -1, (cosine - margin).clamp(min=0), zero)
    return reduced(positive + negative, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    distance = op("pairwise_distance")
    near, far = distance(anchor, positive, p, eps), distance(anchor, negative, p, eps)
    if swap:
        far = op("minimum")(far, distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    single = input.dim() < 2
    scores = input.reshape(1, -1) if single else input
    index = target.reshape(-1, 1)
    gaps = (margin - scores.gather(1, index) + scores).relu()
    gaps = gaps if p == 1 else gaps * gaps
    if weight is not None:
        gaps = gaps * weight[index.reshape(-1)].unsqueeze(1)
    others = tensor.ones_like(gaps).scatter_(1, index, 0.0)
    loss = (gaps * others).sum(1) / scores.shape[1]
    return loss.squeeze(0) if single and reduction == 0 else reduced(loss, reduction)
