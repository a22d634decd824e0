"""A LeNet-sized network for 8x8 images."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images, sgd

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 64, 8, 10


def build(torch: Any, dropout: float = 0.25) -> Any:
    """Two convolutions with batch normalisation and two linear layers."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, CLASSES),
    )


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES, channels=1)


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD with momentum."""
    return sgd(torch, model, lr=1e-2)
