"""NeuMF: He et al., "Neural Collaborative Filtering", 2017."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._networks import networks

USERS, ITEMS, BATCH = 20_000, 5_000, 4096
FACTORS, LAYERS = 64, (256, 256, 128, 64)


def build(torch: Any, dropout: float = 0.5) -> Any:
    """A product of factors and a perceptron over users and items, joined by a linear layer."""
    return networks(torch).NeuMF(USERS, ITEMS, FACTORS, LAYERS, dropout)


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random users, items and whether they met."""
    users, items = rng.integers(0, USERS, BATCH), rng.integers(0, ITEMS, BATCH)
    met = rng.integers(0, 2, BATCH).astype(np.float32)
    return (torch.from_numpy(users), torch.from_numpy(items)), torch.from_numpy(met)


def loss(torch: Any, output: Any, target: Any) -> Any:
    """Binary cross-entropy of logits."""
    return torch.nn.functional.binary_cross_entropy_with_logits(output, target)


def make_optimizer(torch: Any, model: Any) -> Any:
    """Adam."""
    return torch.optim.Adam(model.parameters(), lr=1e-3)
