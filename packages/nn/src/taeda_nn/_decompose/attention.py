"""Attention in terms of products and softmax."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, tensor

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = tensor.matmul(query, key.transpose(-2, -1)) * (
        query.shape[-1] ** -0.5 if scale is None else scale
    )
    if is_causal:
        past = tensor.ones(tuple(scores.shape[-2:]), dtype=tensor.bool, device=query.device).tril()
        scores = scores.masked_fill(~past, -math.inf)
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype == tensor.bool
            else scores + attn_mask
        )
    weights = scores.softmax(-1) if attn_mask is None else _safe_softmax(scores)
    if dropout_p > 0:
        weights = tensor.dropout(weights, dropout_p, True)
    return tensor.matmul(weights, value)


def _safe_softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension; rows that are wholly -inf, where nothing may be attended to, give 0."""
    dead = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0)
