"""What the image classifiers share: random images and classes, cross-entropy, SGD with momentum."""

from __future__ import annotations

from typing import Any

import numpy as np


def images(
    torch: Any, rng: np.random.Generator, batch: int, side: int, classes: int, channels: int = 3
) -> tuple:
    """A batch ((N, C, side, side) float32,) and its classes (N,) int64."""
    pixels = rng.standard_normal((batch, channels, side, side), dtype=np.float32)
    labels = rng.integers(0, classes, batch)
    return (torch.from_numpy(pixels),), torch.from_numpy(labels)


def cross_entropy(torch: Any, output: Any, target: Any) -> Any:
    """The usual loss of classifiers."""
    return torch.nn.functional.cross_entropy(output, target)


def sgd(torch: Any, model: Any, lr: float = 1e-3) -> Any:
    """SGD with momentum and weight decay."""
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
