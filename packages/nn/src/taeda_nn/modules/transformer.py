"""The layers of "Attention Is All You Need" and stacks of them."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from taeda_nn import functional as F
from taeda_nn import init
from taeda_nn._bind import Tensor, autocast_dtype, autocasts, tensor
from taeda_nn.modules._state import attributes
from taeda_nn.modules.activation import GELU, ReLU
from taeda_nn.modules.attention import MultiheadAttention
from taeda_nn.modules.container import ModuleList
from taeda_nn.modules.dropout import Dropout
from taeda_nn.modules.linear import Linear
from taeda_nn.modules.module import Module
from taeda_nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """(sz, sz): -inf above the diagonal, so that no place attends to later ones."""
    return tensor.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    return src.shape[1 if src.dim() == 3 and batch_first else 0]


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation must be 'relu', 'gelu' or a function, found {activation!r}")
    return F.relu if activation == "relu" else F.gelu


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether a mask is the causal one, unless ``is_causal`` says so; a hint needs no look at the mask."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    if mask.shape[-2:] != causal.shape:
        return False
    return bool((mask == causal).all())


def _attended(
    attention: Module, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
) -> Tensor:
    """What ``x`` finds in ``memory``."""
    found, _ = attention(
        x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
    )
    return found


def _batch_first(layers: ModuleList) -> bool:
    """Whether the first of the layers says that batches come first."""
    attention = getattr(layers[0], "self_attn", None) if len(layers) else None
    return bool(getattr(attention, "batch_first", False))


class _Layer(Module):
    """What encoder and decoder layers share: self-attention, the feed-forward part, where norms stand."""

    def _build(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        like: dict[str, Any],
        across: bool,
    ) -> None:
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **like}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if across:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **like)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **like)
        self.norm_first = norm_first
        parts = (1, 2, 3) if across else (1, 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **like))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "activation" not in attributes(self):
            self.activation = F.relu

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _function_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    return _get_activation_fn(activation) if isinstance(activation, str) else activation


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward part, each with a residual connection and a norm.

    Args:
        d_model: Features.
        nhead: Heads of the attention.
        dim_feedforward: Features between the two linear maps.
        dropout: Share that is dropped while training.
        activation: 'relu', 'gelu' or a function.
        layer_norm_eps: eps of the norms.
        batch_first: Whether tensors are (N, L, E) rather than (L, N, E).
        norm_first: Whether norms stand before the parts rather than after the sums.
        bias: Whether linear maps and norms have a shift.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=512, nhead=8)
        >>> layer(torch.rand(10, 32, 512)).shape
        Size([10, 32, 512])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        like = {"device": device, "dtype": dtype}
        self._build(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            like, across=False,
        )  # fmt: skip
        function = _function_of(activation)
        self.activation_relu_or_gelu = _kind_of_activation(function)
        self.activation = function

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Returns the encoded sequence.

        Args:
            src: The sequence.
            src_mask: See ``attn_mask`` of `MultiheadAttention`.
            src_key_padding_mask: See ``key_padding_mask`` there.
            is_causal: Says that ``src_mask`` is the causal one.
        """
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
            x = self.norm2(x + self._ff_block(x))
        if autocasts("cpu") and src.device.type == "cpu" and self._is_one_step(src):
            return x.to(autocast_dtype("cpu"))  # its parts are not casted one by one
        return x

    def _is_one_step(self, src: Tensor) -> bool:
        """Whether PyTorch computes the layer as a whole: in evaluation of a batch, without gradients."""
        if self.training or src.dim() != 3 or _reason_against_one_step(self):
            return False
        return not _is_recorded(self, src)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed(x))


def _kind_of_activation(function: Any) -> int:
    """1 for relu, 2 for gelu, 0 for others."""
    if function is F.relu or isinstance(function, ReLU):
        return 1
    return 2 if function is F.gelu or isinstance(function, GELU) else 0


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward part; arguments as the encoder layer.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=512, nhead=8)
        >>> layer(torch.rand(20, 32, 512), torch.rand(10, 32, 512)).shape
        Size([20, 32, 512])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        like = {"device": device, "dtype": dtype}
        self._build(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            like, across=True,
        )  # fmt: skip
        self.activation = _function_of(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoded sequence.

        Args:
            tgt: The sequence.
            memory: The encoder's output.
            tgt_mask, memory_mask: See ``attn_mask`` of `MultiheadAttention`.
            tgt_key_padding_mask, memory_key_padding_mask: See ``key_padding_mask`` there.
            tgt_is_causal, memory_is_causal: Say that the masks are causal ones.
        """
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        across = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *across)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *across))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        return self.dropout2(_attended(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed(x))


def _reason_against_nested(layer: Any) -> str:
    """Why a stack of such layers cannot leave out padding; empty where it can."""
    attention = getattr(layer, "self_attn", None)
    if not isinstance(layer, TransformerEncoderLayer) or not isinstance(attention, MultiheadAttention):
        return "the layer is no TransformerEncoderLayer"
    return "norm_first is True" if layer.norm_first else _reason_against_one_step(layer)


def _is_recorded(layer: Module, src: Tensor) -> bool:
    return tensor.is_grad_enabled() and (
        src.requires_grad or any(p.requires_grad for p in layer.parameters())
    )


def _reason_against_one_step(layer: TransformerEncoderLayer) -> str:
    attention = layer.self_attn
    if not attention.batch_first:
        return "batch_first of self_attn is not True (use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return "self_attn has inputs of different sizes"
    if attention.in_proj_bias is None:
        return "self_attn has no bias"
    if not layer.activation_relu_or_gelu:
        return "the activation is neither relu nor gelu"
    if layer.norm1.eps != layer.norm2.eps:
        return "norm1 and norm2 differ in eps"
    return "num_heads is odd" if attention.num_heads % 2 else ""


class TransformerEncoder(Module):
    """A stack of encoder layers.

    In evaluation without gradients, places that ``src_key_padding_mask`` leaves out at the ends of sequences are zero
    in the last layer's result, as in PyTorch, which does not compute them.

    Args:
        encoder_layer: The layer, which is copied.
        num_layers: How often.
        norm: A layer behind the stack.
        enable_nested_tensor: Whether padded places may become zero.
        mask_check: Whether the mask is looked at: only padding at the ends can be left out.

    Example:
        >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8), num_layers=6)
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        reason = _reason_against_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        self.mask_check = mask_check
        if enable_nested_tensor and reason:
            warnings.warn(
                f"TransformerEncoder: enable_nested_tensor has no effect because {reason}", stacklevel=2
            )

    def _leaves_out(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        """Whether padded places become zero: in evaluation, without gradients, for padding at the ends."""
        layer = self.layers[0]
        if padding is None or mask is not None or not self.use_nested_tensor or src.dim() != 3:
            return False
        if layer.training or not layer.self_attn.batch_first or padding.dtype != tensor.bool:
            return False
        if _is_recorded(layer, src):
            return False
        return not self.mask_check or bool((padding[:, 1:] >= padding[:, :-1]).all())

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Returns the encoded sequence; arguments as the layers', ``is_causal`` found from the mask by default."""
        leaves_out = self._leaves_out(src, mask, src_key_padding_mask)
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, _batch_first(self.layers)))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if leaves_out:
            assert src_key_padding_mask is not None
            output = output.masked_fill(src_key_padding_mask.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: The layer, which is copied.
        num_layers: How often.
        norm: A layer behind the stack.

    Example:
        >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(512, 8), num_layers=6)
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoded sequence; arguments as the layers', ``tgt_is_causal`` found from the mask by default."""
        size = _get_seq_len(tgt, _batch_first(self.layers))
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, size)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Encoder and decoder.

    Args:
        d_model: Features.
        nhead: Heads of every attention.
        num_encoder_layers, num_decoder_layers: Layers of the stacks.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: See
            `TransformerEncoderLayer`.
        custom_encoder, custom_decoder: Stacks to use instead.

    Raises:
        RuntimeError: Batches or features that differ.

    Example:
        >>> model = nn.Transformer(nhead=16, num_encoder_layers=12)
        >>> model(torch.rand(10, 32, 512), torch.rand(20, 32, 512)).shape
        Size([20, 32, 512])

    Source: Vaswani et al., "Attention Is All You Need", 2017.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
        )
        like: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **like)
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*options, **like), num_encoder_layers, norm
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, eps=layer_norm_eps, **like)
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*options, **like), num_decoder_layers, norm
            )
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        """Draws new initial values of all matrices."""
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoded sequence; masks as those of the stacks."""
        at = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[at] != tgt.shape[at]:
            raise RuntimeError(
                f"Transformer: the batch number of src and tgt must be equal, found {src.shape[at]} and {tgt.shape[at]}"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"Transformer: src and tgt must have {self.d_model} features, "
                f"found {src.shape[-1]} and {tgt.shape[-1]}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): -inf above the diagonal, so that no place attends to later ones."""
        return _generate_square_subsequent_mask(sz, device, dtype)
