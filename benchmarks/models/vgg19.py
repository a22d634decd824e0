"""VGG-19: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2014."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images, sgd
from models._networks import networks

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 4, 96, 1000


def build(torch: Any, dropout: float = 0.5) -> Any:
    """Sixteen 3x3 convolutions in five blocks and three linear layers, with He's weights."""
    return networks(torch).vgg19(num_classes=CLASSES, dropout=dropout)


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD with the paper's 0.01 for batches of 256, scaled to the size of these."""
    return sgd(torch, model, lr=0.01 * BATCH / 256)
