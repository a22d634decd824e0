"""Attention of several heads as a layer."""

from __future__ import annotations

from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, tensor
from taeda_nn.modules.linear import NonDynamicallyQuantizableLinear
from taeda_nn.modules.module import Module
from taeda_nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


# Copies of the layer ask these whether a fused way is open.


def _arg_requires_grad(x: Tensor | None) -> bool:
    """Whether a tensor that may be missing requires gradients."""
    return x is not None and bool(x.requires_grad)


def _check_arg_device(x: Tensor | None) -> bool:
    """Whether a tensor that may be missing is on a device that has numbers."""
    return x is None or x.device.type != "meta"


def _is_make_fx_tracing() -> bool:
    """Whether operators are being recorded: graphs are recorded from functions, so that no layer sees it."""
    return False


class MultiheadAttention(Module):
    """Attention of several heads, each over its share of the features.

    Args:
        embed_dim: Features of queries and of the output.
        num_heads: Number of heads; it divides ``embed_dim``.
        dropout: Share of the weights that is dropped while training.
        bias: Whether the projections have a shift.
        add_bias_kv: Whether a learned key and value are put behind those of every sequence.
        add_zero_attn: Whether a key and a value of zeros are put behind them.
        kdim, vdim: Features of keys and values, by default ``embed_dim``.
        batch_first: Whether inputs and output are (N, L, E) rather than (L, N, E).

    Attributes:
        in_proj_weight: (3 E, E), or ``q_proj_weight``, ``k_proj_weight``, ``v_proj_weight`` where sizes differ.
        in_proj_bias: (3 E,).
        out_proj: The projection of the output.

    Raises:
        ValueError: Sizes that are not positive.

    Example:
        >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
        >>> output, weights = attention(x, x, x)

    Source: Vaswani et al., "Attention Is All You Need", 2017.
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim and num_heads must be positive, found {embed_dim} and {num_heads}"
            )
        super().__init__()
        like = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"MultiheadAttention: embed_dim ({embed_dim}) must be divisible by num_heads ({num_heads})"
            )

        def learned(*shape: int) -> Parameter:
            return Parameter(tensor.empty(shape, **like))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = learned(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = learned(embed_dim, embed_dim)
            self.k_proj_weight = learned(embed_dim, self.kdim)
            self.v_proj_weight = learned(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", learned(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **like)
        self.bias_k = learned(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = learned(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws new initial values."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # States of old modules know only inputs of one size.
        super().__setstate__({"_qkv_same_embed_dim": True, **state})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the output and, if ``need_weights``, the weights; see `F.multi_head_attention_forward`."""
        if query.is_nested:
            rest = (key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
            return self._of_parts(query, key, value, *rest)
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            same_kv, same_qk = key is value, query is key
            query = query.transpose(1, 0)
            key = query if same_qk else key.transpose(1, 0)
            value = key if same_kv else value.transpose(1, 0)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swapped else output), weights

    def _of_parts(
        self, query: Any, key: Any, value: Any, key_padding_mask: Tensor | None, need_weights: bool,
        attn_mask: Tensor | None, average_attn_weights: bool, is_causal: bool,
    ) -> tuple[Any, Tensor | None]:  # fmt: skip
        """Each part of nested tensors attends to itself alone; weights are those of all parts, filled up with zeros."""
        if key_padding_mask is not None or attn_mask is not None:
            raise RuntimeError(
                "MultiheadAttention: nested tensors have no padding and take no 'attn_mask' or 'key_padding_mask'"
            )
        if not self.batch_first:
            raise RuntimeError(
                "MultiheadAttention: nested tensors need batch_first=True, as parts come first"
            )
        made = [
            self.forward(q, k, v, None, need_weights, None, average_attn_weights, is_causal)
            for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
        ]
        output = query._with_parts([out for out, _ in made])
        return output, query._with_parts([w for _, w in made]).to_padded_tensor(0.0) if need_weights else None

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and what it is made of: 0 scores, 1 padding, 2 both, None neither."""
        if key_padding_mask is None and attn_mask is None:
            return None, None
        if attn_mask is None:
            return key_padding_mask, 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2
