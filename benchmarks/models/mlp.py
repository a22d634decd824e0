"""A perceptron of three layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._images import cross_entropy as loss

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, FEATURES, WIDTH, CLASSES = 128, 784, 512, 10


def build(torch: Any, dropout: float = 0.2) -> Any:
    """Three linear layers with rectifiers and dropout."""
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(WIDTH, CLASSES),
    )


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random vectors and classes."""
    x = rng.standard_normal((BATCH, FEATURES), dtype=np.float32)
    return (torch.from_numpy(x),), torch.from_numpy(rng.integers(0, CLASSES, BATCH))


def make_optimizer(torch: Any, model: Any) -> Any:
    """Adam."""
    return torch.optim.Adam(model.parameters(), lr=1e-3)
