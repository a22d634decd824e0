"""BERT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["BertConfig", "BertForMaskedLM", "BertLayer", "BertModel"]


@dataclass(frozen=True)
class BertConfig:
    """Sizes of a BERT; the defaults are those of BERT base, names are Hugging Face's.

    Attributes:
        vocab_size: Tokens.
        hidden_size: Features.
        num_hidden_layers: Layers.
        num_attention_heads: Heads of the attention; they divide ``hidden_size``.
        intermediate_size: Features between the two maps of a layer.
        hidden_dropout_prob: Share of features that is dropped.
        attention_probs_dropout_prob: Share of the attention's weights that is dropped.
        max_position_embeddings: The longest sequence.
        type_vocab_size: Kinds of segments.
        initializer_range: Standard deviation of the first weights.
        layer_norm_eps: eps of the norms.
        pad_token_id: The token that fills sequences up.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "BertConfig: num_attention_heads must divide hidden_size, got "
                f"{self.num_attention_heads} and {self.hidden_size}"
            )


class _Embeddings(nn.Module):
    """The sum of what token, place and segment mean."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Any, segments: Any) -> Any:
        length, limit = tokens.shape[1], self.position_embeddings.num_embeddings
        if length > limit:
            raise ValueError(f"BertModel: sequences are at most {limit} tokens long, got {length}")
        kinds = (
            self.token_type_embeddings.weight[0] if segments is None else self.token_type_embeddings(segments)
        )
        x = self.word_embeddings(tokens) + kinds + self.position_embeddings.weight[:length]
        return self.dropout(self.LayerNorm(x))


class _SelfAttention(nn.Module):
    """Three maps and the attention that they make."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropped = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: Any, mask: Any) -> Any:
        n, length, width = x.shape
        query, key, value = (
            part(x).view(n, length, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=self.dropped if self.training else 0.0
        )
        return attended.transpose(1, 2).reshape(n, length, width)


class _Output(nn.Module):
    """A map whose result is added to what came before, and a norm."""

    def __init__(self, config: BertConfig, features: int) -> None:
        super().__init__()
        self.dense = nn.Linear(features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Any, before: Any) -> Any:
        return self.LayerNorm(self.dropout(self.dense(x)) + before)


class _Attention(nn.Module):
    """Attention with its way around."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Output(config, config.hidden_size)

    def forward(self, x: Any, mask: Any) -> Any:
        return self.output(self.self(x, mask), x)


class _Intermediate(nn.Module):
    """The widening map."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, x: Any) -> Any:
        return nn.functional.gelu(self.dense(x))


class BertLayer(nn.Module):
    """Attention and a perceptron: (N, L, hidden_size) to the same shape.

    Args:
        config: The sizes.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config, config.intermediate_size)

    def forward(self, x: Any, mask: Any = None) -> Any:
        """Returns the next features; ``mask`` (N, 1, 1, L) says which places are attended to."""
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class _Encoder(nn.Module):
    """The layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(self, x: Any, mask: Any) -> Any:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class _Pooler(nn.Module):
    """A map of the first place's features."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Any) -> Any:
        return self.dense(x[:, 0]).tanh()


def _initialize(model: Any, std: float) -> None:
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


class BertModel(nn.Module):
    """Features of tokens that see one another: (N, L) to (N, L, hidden_size), and (N, hidden_size) of the whole.

    Args:
        config: The sizes; by default those of BERT base.
        add_pooling_layer: Whether there are features of the whole; otherwise they are None.

    Raises:
        ValueError: In the call, a sequence longer than ``max_position_embeddings``.

    Source: Devlin et al., "BERT", 2018; keys of Hugging Face's class of this name.

    Example:
        >>> model = BertModel(BertConfig(100, 32, 2, 4, 64))
        >>> features, whole = model(taeda.ones(2, 7, dtype=taeda.int64))
        >>> features.shape, whole.shape
        (Size([2, 7, 32]), Size([2, 32]))
    """

    def __init__(self, config: BertConfig | None = None, add_pooling_layer: bool = True) -> None:
        super().__init__()
        self.config = config = BertConfig() if config is None else config
        self.embeddings = _Embeddings(config)
        self.encoder = _Encoder(config)
        self.pooler = _Pooler(config) if add_pooling_layer else None
        _initialize(self, config.initializer_range)

    def forward(self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None) -> tuple[Any, Any]:
        """Returns features of the tokens and of the whole.

        Args:
            tokens: (N, L).
            attention_mask: (N, L), 0 or False at places that nothing attends to.
            token_type_ids: (N, L), the segments; all of the first by default.
        """
        mask = None if attention_mask is None else attention_mask[:, None, None, :].to(tensor.bool)
        x = self.encoder(self.embeddings(tokens, token_type_ids), mask)
        return x, None if self.pooler is None else self.pooler(x)


class _Transform(nn.Module):
    """A map, GELU and a norm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Any) -> Any:
        return self.LayerNorm(nn.functional.gelu(self.dense(x)))


class _Predictions(nn.Module):
    """Scores of all tokens, with the weights that tokens are read with."""

    def __init__(self, config: BertConfig, words: Any) -> None:
        super().__init__()
        self.transform = _Transform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        _initialize(self, config.initializer_range)
        self.decoder.weight = words
        self.bias = self.decoder.bias

    def forward(self, x: Any) -> Any:
        return self.decoder(self.transform(x))


class BertForMaskedLM(nn.Module):
    """Predicts tokens from what stands around them: (N, L) to (N, L, vocab_size) scores.

    Args:
        config: The sizes; by default those of BERT base.

    Source: see `BertModel`; keys of Hugging Face's class of this name.

    Example:
        >>> model = BertForMaskedLM(BertConfig(100, 32, 2, 4, 64))
        >>> model(taeda.ones(2, 7, dtype=taeda.int64)).shape
        Size([2, 7, 100])
    """

    def __init__(self, config: BertConfig | None = None) -> None:
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.config = self.bert.config
        self.cls = nn.Module()
        self.cls.predictions = _Predictions(self.config, self.bert.embeddings.word_embeddings.weight)

    def forward(self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
        """Returns the scores; arguments as `BertModel`'s."""
        features, _ = self.bert(tokens, attention_mask, token_type_ids)
        return self.cls.predictions(features)
