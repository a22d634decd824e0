"""Attention: of given queries, keys and values, and of several heads with their projections."""

from __future__ import annotations

import math
import warnings
from typing import Any

from taeda_nn import functional as F  # programs that put functions of their own there see the calls of these
from taeda_nn._bind import Tensor, autocasts, op, tensor

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

scaled_dot_product_attention = op("scaled_dot_product_attention")

_NAME = "multi_head_attention_forward"


def _check_ranks(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None) -> bool:
    """Whether the inputs are batched; RuntimeError for ranks that do not fit one another."""
    rank = query.dim()
    if rank not in (2, 3):
        raise RuntimeError(
            f"{_NAME}: argument 'query' must have 2 or 3 dimensions, found shape {tuple(query.shape)}"
        )
    for name, other in (("key", key), ("value", value)):
        if other.dim() != rank:
            raise RuntimeError(
                f"{_NAME}: argument '{name}' must have {rank} dimensions, as 'query' has, "
                f"found shape {tuple(other.shape)}"
            )
    if padding is not None and padding.dim() != rank - 1:
        raise RuntimeError(
            f"{_NAME}: argument 'key_padding_mask' must have {rank - 1} dimensions, "
            f"found shape {tuple(padding.shape)}"
        )
    return rank == 3


def _added_mask(mask: Tensor | None, name: str, dtype: Any) -> Tensor | None:
    """A mask as numbers to add to the scores: -inf where a mask of booleans is True."""
    if mask is None:
        return None
    if mask.dtype == tensor.bool:
        return tensor.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    if not mask.is_floating_point():
        raise RuntimeError(
            f"{_NAME}: argument '{name}' must be of a floating-point dtype or bool, found {mask.dtype}"
        )
    return mask


def _projected(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Tensor, ...], biases: tuple[Tensor | None, ...]
) -> list[Tensor]:
    return [F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _project_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None
) -> list[Tensor]:
    """The three inputs through the three blocks of one weight; equal inputs go through in one product."""
    size = query.shape[-1]
    if key is value and query is key:
        packed = F.linear(query, weight, bias)
        return [packed[..., i * size : (i + 1) * size] for i in range(3)]
    if key is value:
        q = F.linear(query, weight[:size], None if bias is None else bias[:size])
        packed = F.linear(key, weight[size:], None if bias is None else bias[size:])
        return [q, packed[..., :size], packed[..., size:]]
    biases = (None,) * 3 if bias is None else tuple(bias.chunk(3))
    return _projected((query, key, value), tuple(weight.chunk(3)), biases)


def _checked_attn_mask(mask: Tensor | None, length: int, places: int, heads: int) -> Tensor | None:
    """The mask of scores as (1 or batch * heads, length, places)."""
    if mask is None:
        return None
    expected = (length, places) if mask.dim() == 2 else (heads, length, places)
    if mask.dim() not in (2, 3) or tuple(mask.shape) != expected:
        raise RuntimeError(
            f"{_NAME}: argument 'attn_mask' must have shape {(length, places)} or {(heads, length, places)}, "
            f"found {tuple(mask.shape)}"
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _widened(mask: Tensor | None) -> Tensor | None:
    """A mask that lets a further place at the end be attended to."""
    return None if mask is None else F.pad(mask, (0, 1))


def _check_sizes(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, apart: bool
) -> None:
    if query.shape[-1] != embed_dim:
        raise AssertionError(
            f"{_NAME}: argument 'query' has {query.shape[-1]} features, expected {embed_dim}"
        )
    if embed_dim % num_heads:
        raise AssertionError(f"{_NAME}: {embed_dim} features are not divisible by {num_heads} heads")
    same = key.shape[:2] == value.shape[:2] if apart else key.shape == value.shape
    if not same:
        raise AssertionError(
            f"{_NAME}: argument 'value' has shape {tuple(value.shape)}, which does not fit 'key' {tuple(key.shape)}"
        )


def _given(name: str, value: Tensor | None, heads: int, features: int) -> Tensor:
    """Keys or values given ready, of every head."""
    assert value is not None
    if value.shape[0] != heads or value.shape[2] != features:
        raise AssertionError(
            f"{_NAME}: argument '{name}' must have shape ({heads}, places, {features}), found {tuple(value.shape)}"
        )
    return value


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads, with projections of inputs and output: what `nn.MultiheadAttention` computes.

    Args:
        query, key, value: (L, N, E), (S, N, Ek), (S, N, Ev), or without the batch N.
        embed_dim_to_check: E.
        num_heads: Number of heads; it divides E.
        in_proj_weight, in_proj_bias: (3 E, E) and (3 E,): the projections of query, key and value in one.
        bias_k, bias_v: (1, 1, E): a key and a value put behind those of every sequence.
        add_zero_attn: Whether a key and a value of zeros are put behind them too.
        dropout_p: Share of the weights that is dropped while training.
        out_proj_weight, out_proj_bias: The projection of the output.
        training: Whether weights are dropped.
        key_padding_mask: (N, S): True, or -inf, where a key is not attended to.
        need_weights: Whether the weights are returned; without them the scores need not be kept.
        attn_mask: (L, S) or (N * num_heads, L, S): True, or a number to add to the score, -inf for never.
        use_separate_proj_weight: Whether the projections are given apart, in the next three.
        q_proj_weight, k_proj_weight, v_proj_weight: (E, E), (E, Ek), (E, Ev).
        static_k, static_v: Keys and values ready for use, (N * num_heads, S, E / num_heads).
        average_attn_weights: Whether the returned weights are the mean over heads.
        is_causal: Says that ``attn_mask`` is the causal one, which then need not be read.

    Returns: (L, N, E), and the weights (N, L, S), or (N, num_heads, L, S) unaveraged, or None.

    Raises:
        RuntimeError: Shapes or masks that do not fit.

    Source: Vaswani et al., "Attention Is All You Need", 2017.
    """
    batched = _check_ranks(query, key, value, key_padding_mask)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_NAME}: is_causal=True needs 'attn_mask' too")
    length, batch, embed_dim = query.shape
    places = key.shape[0]
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype != attn_mask.dtype:
        warnings.warn(
            f"{_NAME}: mismatched key_padding_mask ({key_padding_mask.dtype}) and attn_mask ({attn_mask.dtype}) are "
            "deprecated: give both in one dtype",
            stacklevel=3,
        )
    padding = _added_mask(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and padding is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _added_mask(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and padding is None
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
        biases = (None,) * 3 if in_proj_bias is None else tuple(in_proj_bias.chunk(3))
        q, k, v = _projected((query, key, value), weights, biases)
    else:
        assert in_proj_weight is not None
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    attn_mask = _checked_attn_mask(attn_mask, length, places, batch * num_heads)
    if bias_k is not None and bias_v is not None:
        k, v = (tensor.cat([x, more.expand(1, batch, embed_dim)]) for x, more in ((k, bias_k), (v, bias_v)))
        attn_mask, padding = _widened(attn_mask), _widened(padding)
    features = embed_dim // num_heads
    q = q.reshape(length, batch, num_heads, features).permute(1, 2, 0, 3)
    k = _by_head("static_k", k, static_k, num_heads, features)
    v = _by_head("static_v", v, static_v, num_heads, features)
    if add_zero_attn:
        zeros = tensor.zeros((batch, num_heads, 1, features), dtype=k.dtype, device=k.device)
        k, v = tensor.cat([k, zeros], 2), tensor.cat([v, zeros], 2)
        attn_mask, padding = _widened(attn_mask), _widened(padding)
    mask = _merged(attn_mask, padding, batch, num_heads, k.shape[2])
    dropout_p = dropout_p if training else 0.0
    attended, scores = _attend(q, k, v, mask, dropout_p, need_weights, is_causal)
    output = attended.permute(2, 0, 1, 3).reshape(length, batch, embed_dim)
    output = F.linear(output, out_proj_weight, out_proj_bias)
    if scores is not None and average_attn_weights:
        scores = scores.mean(1)
    if batched:
        return output, scores
    return output.squeeze(1), None if scores is None else scores.squeeze(0)


def _by_head(name: str, projected: Tensor, static: Tensor | None, heads: int, features: int) -> Tensor:
    """(S, N, E) as (N, heads, S, features), or what was given in its place."""
    places, batch, _ = projected.shape
    if static is not None:
        given = _given(name, static, batch * heads, features)
        return given.reshape(batch, heads, given.shape[1], features)
    return projected.reshape(places, batch, heads, features).permute(1, 2, 0, 3)


def _merged(
    mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, places: int
) -> Tensor | None:
    """Both masks as one that broadcasts against (N, heads, L, S)."""
    if padding is not None:
        if tuple(padding.shape) != (batch, places):
            raise AssertionError(
                f"{_NAME}: argument 'key_padding_mask' must have a place for each of {places} keys of {batch} "
                f"sequences, found shape {tuple(padding.shape)}"
            )
        padding = padding.reshape(batch, 1, 1, places)
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(batch, heads, -1, places)
    return mask if padding is None else padding if mask is None else mask + padding


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, need_weights: bool, causal: bool
) -> tuple[Tensor, Tensor | None]:
    if not need_weights:
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal and mask is None), None
    scores = tensor.matmul(q * (1.0 / math.sqrt(q.shape[-1])), k.transpose(-2, -1))
    if mask is not None:
        # Autocast chooses the precision of products; the mask is added within them.
        scores = scores + (mask.to(scores.dtype) if autocasts(scores.device.type) else mask)
    weights = F.softmax(scores, -1)
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p, True)
    return tensor.matmul(weights, v), weights
