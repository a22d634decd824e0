"""An LSTM language model: Zaremba et al., "Recurrent Neural Network Regularization", 2014."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._networks import networks

VOCABULARY, FEATURES, LAYERS = 4_000, 512, 2
BATCH, LENGTH = 16, 64


def build(torch: Any, dropout: float = 0.5) -> Any:
    """Two layers of 512 features."""
    return networks(torch).LSTMLanguageModel(VOCABULARY, FEATURES, FEATURES, LAYERS, dropout)


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random tokens by time, and the same one place later."""
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (LENGTH + 1, BATCH)))
    return (tokens[:-1],), tokens[1:]


def loss(torch: Any, output: Any, target: Any) -> Any:
    """Cross-entropy of the next tokens."""
    scores, _state = output
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD, as the paper's."""
    return torch.optim.SGD(model.parameters(), lr=0.1)
