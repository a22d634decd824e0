"""NeuMF: He et al., "Neural Collaborative Filtering", 2017."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

USERS, ITEMS, BATCH = 20_000, 5_000, 4096
FACTORS, LAYERS = 64, (256, 256, 128, 64)


def build(torch: Any, dropout: float = 0.5) -> Any:
    """A product of factors and a perceptron over users and items, joined by a linear layer."""
    nn = torch.nn

    class NeuMF(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.user_factors = nn.Embedding(USERS, FACTORS)
            self.item_factors = nn.Embedding(ITEMS, FACTORS)
            self.user_features = nn.Embedding(USERS, LAYERS[0] // 2)
            self.item_features = nn.Embedding(ITEMS, LAYERS[0] // 2)
            self.mlp = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(LAYERS))
            self.final = nn.Linear(FACTORS + LAYERS[-1], 1)
            for table in (self.user_factors, self.item_factors, self.user_features, self.item_features):
                nn.init.normal_(table.weight, 0.0, 0.01)
            for layer in (*self.mlp, self.final):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

        def forward(self, user: Any, item: Any) -> Any:
            product = self.user_factors(user) * self.item_factors(item)
            hidden = torch.cat((self.user_features(user), self.item_features(item)), dim=1)
            for layer in self.mlp:
                hidden = nn.functional.relu(layer(hidden))
                if dropout:
                    hidden = nn.functional.dropout(hidden, dropout, self.training)
            return self.final(torch.cat((product, hidden), dim=1)).view(-1)

    return NeuMF()


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
