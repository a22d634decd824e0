"""GNMT v2: Wu et al., "Google's Neural Machine Translation System", 2016, with four layers on each side."""

from __future__ import annotations

from typing import Any

import numpy as np

VOCABULARY, HIDDEN, LAYERS = 4_000, 256, 4
BATCH, SOURCE, TARGET = 16, 20, 20
PAD, SMOOTHING = 0, 0.1


def _parts(torch: Any, dropout: float) -> tuple[Any, Any]:
    """Encoder and decoder classes of the library."""
    nn = torch.nn
    functional = nn.functional

    class Encoder(nn.Module):
        def __init__(self, embedder: Any) -> None:
            super().__init__()
            self.embedder = embedder
            self.dropout = nn.Dropout(dropout)
            self.layers = nn.ModuleList(
                [nn.LSTM(HIDDEN, HIDDEN, bidirectional=True), nn.LSTM(2 * HIDDEN, HIDDEN)]
            )
            self.layers.extend(nn.LSTM(HIDDEN, HIDDEN) for _layer in range(LAYERS - 2))

        def forward(self, tokens: Any, lengths: Any) -> Any:
            x = self.dropout(self.embedder(tokens))
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
            x, _state = self.layers[0](packed)
            x, _lengths = nn.utils.rnn.pad_packed_sequence(x, total_length=tokens.shape[0])
            x, _state = self.layers[1](self.dropout(x))
            for layer in self.layers[2:]:
                residual = x
                x, _state = layer(self.dropout(x))
                x = x + residual
            return x

    class Attention(nn.Module):
        """Normalised additive attention of Bahdanau et al."""

        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.key = nn.Linear(HIDDEN, HIDDEN, bias=False)
            self.direction = nn.Parameter(torch.empty(HIDDEN).uniform_(-0.1, 0.1))
            self.scale = nn.Parameter(torch.full((1,), HIDDEN**-0.5))
            self.bias = nn.Parameter(torch.zeros(HIDDEN))

        def forward(self, query: Any, keys: Any, mask: Any) -> Any:
            # (batch, target, 1, hidden) + (batch, 1, source, hidden)
            both = self.query(query).unsqueeze(2) + self.key(keys).unsqueeze(1) + self.bias
            direction = self.direction / self.direction.norm() * self.scale
            scores = torch.tanh(both).matmul(direction)
            weights = functional.softmax(scores.masked_fill(mask.unsqueeze(1), -65504.0), dim=-1)
            return torch.bmm(weights, keys)

    class Decoder(nn.Module):
        def __init__(self, embedder: Any) -> None:
            super().__init__()
            self.embedder = embedder
            self.dropout = nn.Dropout(dropout)
            self.first = nn.LSTM(HIDDEN, HIDDEN)
            self.attention = Attention()
            self.layers = nn.ModuleList(nn.LSTM(2 * HIDDEN, HIDDEN) for _layer in range(LAYERS - 1))
            self.classifier = nn.Linear(HIDDEN, VOCABULARY)

        def forward(self, tokens: Any, context: Any, mask: Any) -> Any:
            x, _state = self.first(self.dropout(self.embedder(tokens)))
            attended = self.attention(x.transpose(0, 1), context.transpose(0, 1), mask).transpose(0, 1)
            x, _state = self.layers[0](self.dropout(torch.cat((x, attended), dim=2)))
            for layer in self.layers[1:]:
                residual = x
                x, _state = layer(self.dropout(torch.cat((x, attended), dim=2)))
                x = x + residual
            return self.classifier(x)

    return Encoder, Decoder


def build(torch: Any, dropout: float = 0.2) -> Any:
    """Encoder and decoder with a shared embedding; sequences come first by time."""
    nn = torch.nn
    encoder, decoder = _parts(torch, dropout)

    class GNMT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            embedder = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=PAD)
            nn.init.uniform_(embedder.weight, -0.1, 0.1)
            self.encoder = encoder(embedder)
            self.decoder = decoder(embedder)

        def forward(self, source: Any, lengths: Any, target: Any) -> Any:
            context = self.encoder(source, lengths)
            mask = (source == PAD).transpose(0, 1)
            return self.decoder(target, context, mask)

    return GNMT()


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random sentences, longest first, and the next tokens to predict."""
    lengths = np.sort(rng.integers(SOURCE // 2, SOURCE + 1, BATCH))[::-1].copy()
    lengths[0] = SOURCE
    source = rng.integers(1, VOCABULARY, (SOURCE, BATCH))
    source[np.arange(SOURCE)[:, None] >= lengths] = PAD
    target = rng.integers(1, VOCABULARY, (TARGET + 1, BATCH))
    inputs = (source, lengths, target[:-1].copy())
    return tuple(torch.from_numpy(part) for part in inputs), torch.from_numpy(target[1:].copy())


def loss(torch: Any, output: Any, target: Any) -> Any:
    """Cross-entropy with label smoothing, padding ignored."""
    return torch.nn.functional.cross_entropy(
        output.view(-1, VOCABULARY), target.view(-1), ignore_index=PAD, label_smoothing=SMOOTHING
    )


def make_optimizer(torch: Any, model: Any) -> Any:
    """Adam."""
    return torch.optim.Adam(model.parameters(), lr=1e-3)
