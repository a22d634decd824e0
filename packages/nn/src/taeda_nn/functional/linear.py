"""Affine maps, tables of vectors, distances and attention."""

from __future__ import annotations

import math
from typing import Any

from taeda_nn._bind import Tensor, no_grad, op, tensor
from taeda_nn._errors import not_tensors

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "linear",
    "normalize",
    "one_hot",
    "pairwise_distance",
    "scaled_dot_product_attention",
]


def _linear_formula(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = tensor.matmul(input, weight.t())
    return result if bias is None else result + bias


linear = op("linear", _linear_formula)
one_hot = op("one_hot")
_embedding = op("embedding")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x1^T W x2 + b`` for every output feature.

    Args:
        input1: (..., in1).
        input2: (..., in2), leading dimensions as ``input1``'s.
        weight: (out, in1, in2).
        bias: (out,).

    Returns: (..., out).
    """
    try:
        same = tuple(input1.shape[:-1]) == tuple(input2.shape[:-1])
        features = tuple(weight.shape[1:])
    except AttributeError:
        raise not_tensors("bilinear", input1=input1, input2=input2, weight=weight) from None
    if not same:
        raise RuntimeError(
            f"bilinear: leading dimensions of input1 {tuple(input1.shape)} and input2 {tuple(input2.shape)} differ"
        )
    if (input1.shape[-1], input2.shape[-1]) != features:
        raise RuntimeError(
            f"bilinear: last dimensions {input1.shape[-1]} and {input2.shape[-1]} must be those of weight "
            f"{tuple(weight.shape)}"
        )
    out_features, in1, in2 = weight.shape
    left = tensor.matmul(input1.unsqueeze(-2), weight.permute(1, 0, 2).reshape(in1, out_features * in2))
    left = left.reshape(*input1.shape[:-1], out_features, in2)
    result = tensor.matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` chosen by ``input``.

    Args:
        input: Integer indices, any shape.
        weight: (rows, features).
        padding_idx: Row that gets no gradient.
        max_norm: Rows used whose norm is greater are rescaled in place first.
        norm_type: The p of that norm.
        scale_grad_by_freq: Whether a row's gradient is divided by how often it was used.
        sparse: Not supported yet: NotImplementedError.

    Returns: shape of ``input`` with ``features`` appended.
    """
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not supported; use sparse=False")
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: padding_idx {padding_idx} is out of range for {rows} rows")
    elif padding_idx < 0:
        padding_idx += rows
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _renorm_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        used = indices.reshape(-1)  # a row used twice is given the same values twice
        rows = weight[used]
        norms = rows.abs().pow(norm_type).sum(-1, keepdim=True).pow(1.0 / norm_type)
        weight[used] = tensor.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between ``x1`` and ``x2`` along ``dim``; norms below ``eps`` count as ``eps``."""
    product = x1 * x2
    try:
        x1, x2 = x1.expand(product.shape), x2.expand(product.shape)
    except AttributeError:
        raise not_tensors("cosine_similarity", x1=x1, x2=x2) from None
    return product.sum(dim) / (_norm(x1, 2.0, dim).clamp(min=eps) * _norm(x2, 2.0, dim).clamp(min=eps))


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension."""
    return _norm(x1 - x2 + eps, p, -1, keepdim)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input`` divided by its p-norm along ``dim``; norms below ``eps`` count as ``eps``."""
    try:
        norm = _norm(input, p, dim, True)
    except AttributeError:
        raise not_tensors("normalize", input=input) from None
    return input / norm.clamp(min=eps)


def _norm(x: Tensor, p: float, dim: int, keepdim: bool = False) -> Tensor:
    if p == 2.0:
        # The square root has no finite gradient at 0, where the norm's subgradient is 0.
        squares = (x * x).sum(dim, keepdim=keepdim)
        zero = squares == 0
        return tensor.where(zero, squares, tensor.where(zero, tensor.ones_like(squares), squares).sqrt())
    if p == 1.0:
        return x.abs().sum(dim, keepdim=keepdim)
    if p == math.inf:
        return x.abs().amax(dim, keepdim=keepdim)
    if p == 0.0:
        return (x != 0).sum(dim, keepdim=keepdim).to(x.dtype)
    return x.abs().pow(p).sum(dim, keepdim=keepdim).pow(1.0 / p)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query key^T * scale + mask) value.

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, Ev).
        attn_mask: Broadcastable to (..., L, S); False or -inf where attention is forbidden.
        dropout_p: Share of attention weights dropped, always.
        is_causal: Whether position i sees positions up to i only.
        scale: 1 / sqrt(E) by default.

    Returns: (..., L, Ev).

    Source: Vaswani et al., "Attention Is All You Need", 2017.
    """
    scores = tensor.matmul(query, key.transpose(-2, -1)) * (
        query.shape[-1] ** -0.5 if scale is None else scale
    )
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
        shape = tuple(scores.shape[-2:])
        attn_mask = tensor.ones(shape, dtype=tensor.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = _masked(scores, attn_mask)
    weights: Any = scores.softmax(-1) if attn_mask is None or is_causal else _safe_softmax(scores)
    if dropout_p > 0:
        weights = op("dropout")(weights, dropout_p, True)
    return tensor.matmul(weights, value)


def _safe_softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension; rows that are wholly -inf, where nothing may be attended to, give 0."""
    dead = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(dead, 0.0).softmax(-1).masked_fill(dead, 0.0)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -math.inf) if mask.dtype == tensor.bool else scores + mask
