"""NeuMF: recommendations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["NeuMF"]


class NeuMF(nn.Module):
    """How likely users meet items: (N,) users and (N,) items to (N,) logits.

    A product of factors and a perceptron over both, joined by a linear map.

    Args:
        users: Users.
        items: Items.
        factors: Factors of the product.
        layers: Features of the perceptron; the first are divided between user and item.
        dropout: Share of features that is dropped behind each of its maps.

    Raises:
        ValueError: No layers, or an odd number of features in the first.

    Source: He et al., "Neural Collaborative Filtering", 2017.

    Example:
        >>> NeuMF(10, 20)(taeda.tensor([1, 2]), taeda.tensor([3, 4])).shape
        Size([2])
    """

    def __init__(
        self,
        users: int,
        items: int,
        factors: int = 64,
        layers: Sequence[int] = (256, 256, 128, 64),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not layers or layers[0] % 2:
            raise ValueError(f"NeuMF: layers must begin with an even number, got {tuple(layers)}")
        self.user_factors = nn.Embedding(users, factors)
        self.item_factors = nn.Embedding(items, factors)
        self.user_features = nn.Embedding(users, layers[0] // 2)
        self.item_features = nn.Embedding(items, layers[0] // 2)
        self.mlp = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(layers))
        self.final = nn.Linear(factors + layers[-1], 1)
        self.dropout = dropout
        for table in (self.user_factors, self.item_factors, self.user_features, self.item_features):
            nn.init.normal_(table.weight, 0.0, 0.01)
        for layer in (*self.mlp, self.final):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, user: Any, item: Any) -> Any:
        product = self.user_factors(user) * self.item_factors(item)
        hidden = tensor.cat((self.user_features(user), self.item_features(item)), dim=1)
        for layer in self.mlp:
            hidden = nn.functional.relu(layer(hidden))
            if self.dropout:
                hidden = nn.functional.dropout(hidden, self.dropout, self.training)
        return self.final(tensor.cat((product, hidden), dim=1)).view(-1)
