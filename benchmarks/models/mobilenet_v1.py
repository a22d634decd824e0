"""MobileNet v1: Howard et al., "MobileNets", 2017."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images, sgd
from models._networks import networks

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 16, 128, 1000


def build(torch: Any, dropout: float = 0.0) -> Any:
    """A convolution and thirteen pairs of depthwise and pointwise ones, with He's weights; ``dropout`` is unused."""
    return networks(torch).MobileNetV1(CLASSES)


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD at the start of a warm-up: from fresh weights larger steps amplify every rounding error tenfold a step."""
    return sgd(torch, model, lr=1e-6)
