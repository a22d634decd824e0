"""Products of matrices in terms of ``matmul``."""

from __future__ import annotations

import math

from taeda_nn._bind import Tensor, tensor

__all__ = ["bilinear", "linear", "scaled_dot_product_attention"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = tensor.matmul(input, weight.t())
    return result if bias is None else result + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    out_features, in1, in2 = weight.shape
    left = tensor.matmul(input1.unsqueeze(-2), weight.permute(1, 0, 2).reshape(in1, out_features * in2))
    left = left.reshape(*input1.shape[:-1], out_features, in2)
    result = tensor.matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> Tensor:
    scores = tensor.matmul(query, key.transpose(-2, -1)) * (
        query.shape[-1] ** -0.5 if scale is None else scale
    )
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "scaled_dot_product_attention: argument 'attn_mask' must be None with is_causal=True"
            )
        attn_mask = tensor.ones(tuple(scores.shape[-2:]), dtype=tensor.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, -math.inf)
            if attn_mask.dtype == tensor.bool
            else scores + attn_mask
        )
    weights = scores.softmax(-1) if attn_mask is None or is_causal else _safe_softmax(scores)
    if dropout_p > 0:
        weights = tensor.dropout(weights, dropout_p, True)
    return tensor.matmul(weights, value)


def _safe_softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension; rows that are wholly -inf, where nothing may be attended to, give 0."""
    dead = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0)
