"""AlexNet: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images
from models._images import sgd as make_optimizer
from models._networks import networks

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 16, 224, 1000


def build(torch: Any, dropout: float = 0.5) -> Any:
    """Five convolutions and three linear layers."""
    return networks(torch).AlexNet(CLASSES, dropout)


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)
