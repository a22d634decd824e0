"""GNMT v2: translation with stacks of LSTMs and additive attention."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["GNMT"]


class _Encoder(nn.Module):
    """LSTMs, the first in both directions; from the third on with a way around."""

    def __init__(self, embedder: Any, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedder = embedder
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            [nn.LSTM(hidden, hidden, bidirectional=True), nn.LSTM(2 * hidden, hidden)]
        )
        self.layers.extend(nn.LSTM(hidden, hidden) for _ in range(layers - 2))

    def forward(self, tokens: Any, lengths: Any) -> Any:
        x = self.dropout(self.embedder(tokens))
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        x, _ = self.layers[0](packed)
        x, _ = nn.utils.rnn.pad_packed_sequence(x, total_length=tokens.shape[0])
        x, _ = self.layers[1](self.dropout(x))
        for layer in self.layers[2:]:
            inner, _ = layer(self.dropout(x))
            x = inner + x
        return x


class _Attention(nn.Module):
    """Normalised additive attention of Bahdanau et al."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.direction = nn.Parameter(tensor.empty(hidden).uniform_(-0.1, 0.1))
        self.scale = nn.Parameter(tensor.full((1,), hidden**-0.5))
        self.bias = nn.Parameter(tensor.zeros(hidden))

    def forward(self, query: Any, keys: Any, mask: Any) -> Any:
        # (batch, target, 1, hidden) + (batch, 1, source, hidden)
        both = self.query(query).unsqueeze(2) + self.key(keys).unsqueeze(1) + self.bias
        direction = self.direction / self.direction.norm() * self.scale
        scores = tensor.tanh(both).matmul(direction)
        weights = nn.functional.softmax(scores.masked_fill(mask.unsqueeze(1), -65504.0), dim=-1)
        return tensor.bmm(weights, keys)


class _Decoder(nn.Module):
    """LSTMs that all see what the first one attended to."""

    def __init__(self, embedder: Any, vocabulary: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedder = embedder
        self.dropout = nn.Dropout(dropout)
        self.first = nn.LSTM(hidden, hidden)
        self.attention = _Attention(hidden)
        self.layers = nn.ModuleList(nn.LSTM(2 * hidden, hidden) for _ in range(layers - 1))
        self.classifier = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Any, context: Any, mask: Any) -> Any:
        x, _ = self.first(self.dropout(self.embedder(tokens)))
        attended = self.attention(x.transpose(0, 1), context.transpose(0, 1), mask).transpose(0, 1)
        x, _ = self.layers[0](self.dropout(tensor.cat((x, attended), dim=2)))
        for layer in self.layers[1:]:
            inner, _ = layer(self.dropout(tensor.cat((x, attended), dim=2)))
            x = inner + x
        return self.classifier(x)


class GNMT(nn.Module):
    """Translates: (S, N) tokens read, their lengths and (T, N) tokens written so far to (T, N, vocabulary) scores.

    Encoder and decoder share one embedding, so source and target share one vocabulary.

    Args:
        vocabulary: Tokens.
        hidden: Features.
        layers: LSTMs of encoder and decoder, at least 2.
        dropout: Share of features that is dropped before each LSTM.
        pad: The token that fills sequences up; nothing attends to it.

    Raises:
        ValueError: Fewer than two layers.

    Source: Wu et al., "Google's Neural Machine Translation System", 2016, with four layers on each side.

    Example:
        >>> tokens = taeda.ones(5, 2, dtype=taeda.int64)
        >>> GNMT(100, 16)(tokens, taeda.tensor([5, 4]), tokens).shape
        Size([5, 2, 100])
    """

    def __init__(
        self,
        vocabulary: int = 32_000,
        hidden: int = 1024,
        layers: int = 4,
        dropout: float = 0.2,
        pad: int = 0,
    ) -> None:
        super().__init__()
        if layers < 2:
            raise ValueError(f"GNMT: layers must be at least 2, got {layers}")
        self.pad = pad
        embedder = nn.Embedding(vocabulary, hidden, padding_idx=pad)
        nn.init.uniform_(embedder.weight, -0.1, 0.1)
        self.encoder = _Encoder(embedder, hidden, layers, dropout)
        self.decoder = _Decoder(embedder, vocabulary, hidden, layers, dropout)

    def forward(self, source: Any, lengths: Any, target: Any) -> Any:
        """Returns the scores; sentences come longest first, ``lengths`` (N,) are theirs."""
        context = self.encoder(source, lengths)
        mask = (source == self.pad).transpose(0, 1)
        return self.decoder(target, context, mask)
