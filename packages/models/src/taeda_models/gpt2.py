"""GPT-2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["GPT2Config", "GPT2LMHeadModel", "GPT2Model"]


@dataclass(frozen=True)
class GPT2Config:
    """Sizes of a GPT-2; the defaults are the small one's, names are Hugging Face's.

    Attributes:
        vocab_size: Tokens.
        n_positions: The longest sequence.
        n_embd: Features.
        n_layer: Layers.
        n_head: Heads of the attention; they divide ``n_embd``.
        n_inner: Features between the two maps of a layer; None: four times ``n_embd``.
        resid_pdrop: Share that is dropped of what a layer adds.
        embd_pdrop: Share of the embeddings that is dropped.
        attn_pdrop: Share of the attention's weights that is dropped.
        layer_norm_epsilon: eps of the norms.
        initializer_range: Standard deviation of the first weights.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ValueError(f"GPT2Config: n_head must divide n_embd, got {self.n_head} and {self.n_embd}")


class _Map(nn.Module):
    """A linear map whose weight is (in, out), as the published ones are."""

    def __init__(self, features: int, out: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor.empty(features, out).normal_(std=std))
        self.bias = nn.Parameter(tensor.zeros(out))

    def forward(self, x: Any) -> Any:
        return nn.functional.linear(x, self.weight.t(), self.bias)


class _Attention(nn.Module):
    """Attention to the place itself and those before it."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        width, std = config.n_embd, config.initializer_range
        self.heads, self.dropped = config.n_head, config.attn_pdrop
        self.c_attn = _Map(width, 3 * width, std)
        self.c_proj = _Map(width, width, std * (2 * config.n_layer) ** -0.5)
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Any) -> Any:
        n, length, width = x.shape
        parts = self.c_attn(x).view(n, length, 3, self.heads, width // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropped if self.training else 0.0, is_causal=True
        )
        return self.resid_dropout(self.c_proj(attended.transpose(1, 2).reshape(n, length, width)))


class _MLP(nn.Module):
    """Two maps with GELU between them."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        width, std = config.n_embd, config.initializer_range
        hidden = 4 * width if config.n_inner is None else config.n_inner
        self.c_fc = _Map(width, hidden, std)
        self.c_proj = _Map(hidden, width, std * (2 * config.n_layer) ** -0.5)
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Any) -> Any:
        return self.dropout(self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh")))


class _Block(nn.Module):
    """Attention and a perceptron, each behind a norm and with a way around."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = _Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = _MLP(config)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def _drop_masks(module: Any, state: Any, prefix: str, *_: Any) -> None:
    """Takes the causal masks out of a state: published files have them, and no parameter has their names."""
    for key in list(state):
        if key.startswith(prefix) and key.endswith((".attn.bias", ".attn.masked_bias")):
            del state[key]


class GPT2Model(nn.Module):
    """Features of tokens that see what comes before them: (N, L) to (N, L, n_embd).

    Args:
        config: The sizes; by default those of GPT-2 small.

    Raises:
        ValueError: In the call, a sequence longer than ``n_positions``.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019; keys of Hugging Face's class
    of this name and of the published files.

    Example:
        >>> model = GPT2Model(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4))
        >>> model(taeda.zeros(1, 5, dtype=taeda.int64)).shape
        Size([1, 5, 32])
    """

    def __init__(self, config: GPT2Config | None = None) -> None:
        super().__init__()
        self.config = config = GPT2Config() if config is None else config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(_Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=config.initializer_range)
        self.register_load_state_dict_pre_hook(_drop_masks)

    def forward(self, tokens: Any) -> Any:
        length = tokens.shape[-1]
        if length > self.config.n_positions:
            raise ValueError(
                f"GPT2Model: sequences are at most {self.config.n_positions} tokens long, got {length}"
            )
        x = self.drop(self.wte(tokens) + self.wpe.weight[:length])
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class GPT2LMHeadModel(nn.Module):
    """Predicts the next token: (N, L) to (N, L, vocab_size) scores; reads and predicts with the same weights.

    Args:
        config: The sizes; by default those of GPT-2 small.

    Source: see `GPT2Model`; keys of Hugging Face's class of this name.

    Example:
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4))
        >>> model.generate(taeda.zeros(1, 5, dtype=taeda.int64), 3).shape
        Size([1, 8])
    """

    def __init__(self, config: GPT2Config | None = None) -> None:
        super().__init__()
        self.transformer = GPT2Model(config)
        self.config = config = self.transformer.config
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens: Any) -> Any:
        return self.lm_head(self.transformer(tokens))

    def generate(self, tokens: Any, count: int, temperature: float = 1.0, top_k: int | None = None) -> Any:
        """Appends ``count`` tokens to (N, L), drawn one after the other, without gradients.

        Args:
            tokens: The beginning; at least one token.
            count: How many.
            temperature: What scores are divided by; 0: the most likely token.
            top_k: How many tokens are drawn from.

        Raises:
            ValueError: A negative ``count`` or ``temperature``, ``top_k`` below 1, or no token to begin with.
        """
        if count < 0 or temperature < 0 or (top_k is not None and top_k < 1) or not tokens.shape[-1]:
            raise ValueError(
                "GPT2LMHeadModel.generate: needs count >= 0, temperature >= 0, top_k >= 1 and a token to begin with, "
                f"got {count}, {temperature}, {top_k} and shape {tuple(tokens.shape)}"
            )
        with tensor.no_grad():
            for _ in range(count):
                scores = self(tokens[:, -self.config.n_positions :])[:, -1]
                tokens = tensor.cat([tokens, _drawn(scores, temperature, top_k)], dim=1)
        return tokens


def _drawn(scores: Any, temperature: float, top_k: int | None) -> Any:
    """(N, 1) tokens of (N, vocabulary) scores."""
    if temperature == 0:
        return scores.argmax(-1, keepdim=True)
    if top_k is not None:
        least = scores.topk(min(top_k, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, -float("inf"))
    return tensor.multinomial((scores / temperature).softmax(-1), 1)
