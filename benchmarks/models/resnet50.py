"""ResNet-50: He et al., "Deep Residual Learning for Image Recognition", 2015."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images
from models._images import sgd as make_optimizer
from models._networks import networks

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 8, 128, 1000


def build(torch: Any, dropout: float = 0.0) -> Any:
    """Four stages of bottleneck blocks with He's weights; ``dropout`` is unused.

    Every block begins as the identity (Goyal et al., "Accurate, Large Minibatch SGD", 2017, 5.1).
    """
    model = networks(torch).resnet50(num_classes=CLASSES, zero_init_residual=True)
    torch.nn.init.normal_(model.fc.weight, 0.0, 0.01)
    torch.nn.init.zeros_(model.fc.bias)
    return model


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)
