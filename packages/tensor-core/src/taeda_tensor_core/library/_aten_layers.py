"""Whole layers as PyTorch's operators, which its compiled modules call where no gradient is recorded."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C, ops
from taeda_tensor_core.library._aten_parts import part


def _hidden(mask: Any, mask_type: int | None, heads: int) -> Any:
    """A mask as one over batches, heads, queries and keys; True hides."""
    mask = mask.to(_C.bool)
    if mask_type == 1:  # of keys, for each sample
        return mask.view(mask.shape[0], 1, 1, mask.shape[1])
    return mask.unsqueeze(1) if mask.dim() == 3 and mask.shape[1] != heads else mask


def _heads(x: Any, count: int) -> Any:
    return x.view(x.shape[0], x.shape[1], count, x.shape[2] // count).transpose(1, 2)


@part(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
    "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, "
    "bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)"
)
def _native_multi_head_attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, mask: Any = None, need_weights: bool = True, average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attention of (batch, length, embed_dim) by the three projections in one matrix, and its weights."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    given = (query, key, value)
    q, k, v = (_heads(ops.linear(x, w, b), num_head) for x, w, b in zip(given, weights, biases, strict=True))
    scores = (q * (embed_dim // num_head) ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(_hidden(mask, mask_type, num_head), -float("inf"))
    shares = _C.softmax(scores, -1)
    mixed = (shares @ v).transpose(1, 2).flatten(2)
    out = ops.linear(mixed, proj_weight, proj_bias)
    if not need_weights:
        return out, _C.empty((0,), dtype=out.dtype)
    return out, shares.mean(1) if average_attn_weights else shares


@part(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, "
    "Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, "
    "Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor"
)
def _transformer_encoder_layer_fwd(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
    norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attention and two linear layers, each beside the identity, normalised before or after."""

    def attended(x: Any) -> Any:
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type
        )[0]

    def fed(x: Any) -> Any:
        inner = ops.linear(x, ffn_weight_1, ffn_bias_1)
        return ops.linear(ops.gelu(inner) if use_gelu else _C.relu(inner), ffn_weight_2, ffn_bias_2)

    def first(x: Any) -> Any:
        return ops.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def second(x: Any) -> Any:
        return ops.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(first(src))
        return x + fed(second(x))
    x = first(src + attended(src))
    return second(x + fed(x))


@part(
    "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    "Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _native_batch_norm_legit_functional(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    """A normalisation, and the statistics of the running ones in the place of writing them."""
    mean, variance = running_mean.clone(), running_var.clone()
    made = _C.native_batch_norm(input, weight, bias, mean, variance, training, momentum, eps)
    return *made, mean, variance
