"""Sequences: an LSTM language model and a Transformer that translates."""

from __future__ import annotations

import math
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["LSTMLanguageModel", "PositionalEncoding", "TranslationTransformer"]


class LSTMLanguageModel(nn.Module):
    """Predicts the next token: (L, N) tokens to (L, N, vocabulary) scores and the state to go on from.

    Args:
        vocabulary: Tokens.
        features: Features of a token.
        hidden: Features of the LSTM.
        layers: Its layers.
        dropout: Share of features that is dropped.
        tied: Whether tokens are read and predicted with the same weights; ``features`` must be ``hidden`` then.

    Raises:
        ValueError: ``tied``, and ``features`` is not ``hidden``.

    Source: Zaremba et al., "Recurrent Neural Network Regularization", 2014; keys of PyTorch's example.

    Example:
        >>> scores, state = LSTMLanguageModel(100, 32, 32, 2)(taeda.zeros(5, 3, dtype=taeda.int64))
        >>> scores.shape
        Size([5, 3, 100])
    """

    def __init__(
        self,
        vocabulary: int,
        features: int = 200,
        hidden: int = 200,
        layers: int = 2,
        dropout: float = 0.5,
        tied: bool = False,
    ) -> None:
        super().__init__()
        if tied and features != hidden:
            raise ValueError(f"LSTMLanguageModel: tied needs features == hidden, got {features} and {hidden}")
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, features)
        self.rnn = nn.LSTM(features, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocabulary)
        if tied:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens: Any, state: tuple[Any, Any] | None = None) -> tuple[Any, tuple[Any, Any]]:
        output, state = self.rnn(self.drop(self.encoder(tokens)), state)
        return self.decoder(self.drop(output)), state


class PositionalEncoding(nn.Module):
    """Adds waves of many lengths to (N, L, E), so that places can be told apart.

    Args:
        features: E, an even number.
        dropout: Share that is dropped afterwards.
        length: The longest sequence.

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.5.
    """

    def __init__(self, features: int, dropout: float = 0.0, length: int = 5000) -> None:
        super().__init__()
        if features % 2:
            raise ValueError(f"PositionalEncoding: features must be even, got {features}")
        self.dropout = nn.Dropout(dropout)
        rates = tensor.exp(tensor.arange(0, features, 2) * (-math.log(10000.0) / features))
        angles = tensor.arange(length).unsqueeze(1) * rates
        waves = tensor.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, x: Any) -> Any:
        if x.shape[1] > self.waves.shape[0]:
            raise ValueError(
                f"PositionalEncoding: sequences are at most {self.waves.shape[0]} long, got {x.shape[1]}"
            )
        return self.dropout(x + self.waves[: x.shape[1]])


class TranslationTransformer(nn.Module):
    """Translates: (N, S) tokens read and (N, T) tokens written so far to (N, T, target_vocabulary) scores.

    Args:
        source_vocabulary: Tokens that are read.
        target_vocabulary: Tokens that are written.
        features: Features.
        heads: Heads of the attention.
        layers: Layers of encoder and decoder.
        hidden: Features between the two maps of a layer.
        dropout: Share of features that is dropped.
        pad: The token that fills sequences up; nothing attends to it.
        length: The longest sequence.

    Source: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> model = TranslationTransformer(100, 90, 32, 4, 2, 64)
        >>> model(taeda.ones(2, 7, dtype=taeda.int64), taeda.ones(2, 5, dtype=taeda.int64)).shape
        Size([2, 5, 90])
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        features: int = 512,
        heads: int = 8,
        layers: int = 6,
        hidden: int = 2048,
        dropout: float = 0.1,
        pad: int = 0,
        length: int = 5000,
    ) -> None:
        super().__init__()
        self.pad = pad
        self.scale = math.sqrt(features)
        self.source = nn.Embedding(source_vocabulary, features, padding_idx=pad)
        self.target = nn.Embedding(target_vocabulary, features, padding_idx=pad)
        self.positions = PositionalEncoding(features, dropout, length)
        self.transformer = nn.Transformer(features, heads, layers, layers, hidden, dropout, batch_first=True)
        self.generator = nn.Linear(features, target_vocabulary)

    def forward(self, source: Any, target: Any) -> Any:
        length = target.shape[1]
        later = tensor.ones(length, length, dtype=tensor.bool, device=target.device).triu(1)
        padding = source == self.pad
        output = self.transformer(
            self.positions(self.source(source) * self.scale),
            self.positions(self.target(target) * self.scale),
            tgt_mask=later,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=target == self.pad,
            memory_key_padding_mask=padding,
        )
        return self.generator(output)
