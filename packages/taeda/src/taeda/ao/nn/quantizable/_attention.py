"""Attention of linear layers that can be quantized; scores and weights stay numbers."""

from __future__ import annotations

from typing import Any

import taeda
from taeda.ao.nn.quantized._functional_modules import FloatFunctional
from taeda_registry.slots import nn


class MultiheadAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` with a linear layer for each of query, key and value.

    Its arguments are those of `nn.MultiheadAttention`.
    """

    _FLOAT_MODULE = nn.MultiheadAttention

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
        from taeda.ao.quantization import DeQuantStub, QuantStub

        options = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            **options,
        )
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias=bias, **options)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias=bias, **options)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **options)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """As `nn.MultiheadAttention.forward`, of batches alone.

        Raises:
            ValueError: Both `attn_mask` and `is_causal` are given.
        """
        if attn_mask is not None and is_causal:
            raise ValueError("Only allow causal mask or attn_mask")
        if self.batch_first:
            query, key, value = (part.transpose(0, 1) for part in (query, key, value))
        targets, batch, _ = query.shape
        width = self.embed_dim // self.num_heads
        q = self.dequant_q(self.q_scaling_product.mul_scalar(self.linear_Q(query), width**-0.5))
        k, v = self.dequant_k(self.linear_K(key)), self.dequant_v(self.linear_V(value))
        more = 0
        if self.bias_k is not None:
            k = taeda.cat([k, _numbers(self.bias_k).expand(1, batch, -1)])
            v = taeda.cat([v, _numbers(self.bias_v).expand(1, batch, -1)])
            more += 1
        if self.add_zero_attn:
            k, v = (taeda.cat([part, taeda.zeros_like(part[:1])]) for part in (k, v))
            more += 1
        q, k, v = (self._heads(part, width) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1)
        if is_causal:
            attn_mask = taeda.ones(targets, key.shape[0], dtype=taeda.bool).triu(1)
        for mask in (attn_mask, key_padding_mask):
            if mask is not None:
                scores = _masked(scores, self._by_heads(mask, more, batch, mask is attn_mask))
        weights = nn.functional.dropout(scores.softmax(-1), self.dropout, self.training)
        mixed = (weights @ v).permute(2, 0, 1, 3).reshape(targets, batch, self.embed_dim)
        result = self.out_proj(self.quant_attn_output(mixed))
        weights = self.quant_attn_output_weights(weights)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return result.transpose(0, 1) if self.batch_first else result, weights if need_weights else None

    def _heads(self, part: Any, width: int) -> Any:
        """(length, batch, features) as (batch, heads, length, width)."""
        return part.reshape(part.shape[0], part.shape[1], self.num_heads, width).permute(1, 2, 0, 3)

    def _by_heads(self, mask: Any, more: int, batch: int, of_scores: bool) -> Any:
        """A mask of the scores of (batch, heads, targets, sources), open for sources that were put behind."""
        if mask.dtype == taeda.uint8:
            mask = mask.to(taeda.bool)
        mask = nn.functional.pad(mask, (0, more)) if more else mask
        if not of_scores:
            return mask[:, None, None]
        return mask if mask.dim() == 2 else mask.reshape(batch, self.num_heads, *mask.shape[1:])

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> MultiheadAttention:
        """The layer in place of an `nn.MultiheadAttention` with a configuration, observed."""
        from taeda.ao.quantization import prepare

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"from_float: expected {cls._FLOAT_MODULE}, found {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("from_float: the module has no 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None,
            other.bias_k is not None, other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = other.q_proj_weight, other.k_proj_weight, other.v_proj_weight
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        layers = made.linear_Q, made.linear_K, made.linear_V
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight.detach(), weight.requires_grad)
            layer.bias = None if bias is None else nn.Parameter(bias.detach(), bias.requires_grad)
        made.eval()
        return prepare(made, inplace=True)

    def dequantize(self) -> Any:
        """The `nn.MultiheadAttention` with the numbers of the quantized weights."""
        parts = [
            layer._weight_bias() for layer in (self.linear_Q, self.linear_K, self.linear_V, self.out_proj)
        ]
        weights, biases = zip(*parts, strict=True)
        made = self._FLOAT_MODULE(
            self.embed_dim, self.num_heads, self.dropout, biases[0] is not None, self.bias_k is not None,
            self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        numbers = [weight.dequantize() for weight in weights]
        with taeda.no_grad():
            if made._qkv_same_embed_dim:
                made.in_proj_weight.copy_(taeda.cat(numbers[:3]))
            else:
                for name, weight in zip("qkv", numbers[:3], strict=True):
                    getattr(made, f"{name}_proj_weight").copy_(weight)
            made.out_proj.weight.copy_(numbers[3])
            if made.in_proj_bias is not None:
                made.in_proj_bias.copy_(taeda.cat(biases[:3]))
                made.out_proj.bias.copy_(biases[3])
            if self.bias_k is not None:
                made.bias_k.copy_(_numbers(self.bias_k))
                made.bias_v.copy_(_numbers(self.bias_v))
        return made

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """What `nn.quantized.MultiheadAttention` has.

        Raises:
            NotImplementedError: Always: this class is what is observed.
        """
        raise NotImplementedError("from_observed: quantizable attention is made of float one; see from_float")


def _numbers(part: Any) -> Any:
    return part.dequantize() if part.is_quantized else part


def _masked(scores: Any, mask: Any) -> Any:
    return scores.masked_fill(mask, float("-inf")) if mask.dtype == taeda.bool else scores + mask
