"""VGG-19: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2014."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images, initialize, sgd

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 4, 96, 1000
BLOCKS = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


def build(torch: Any, dropout: float = 0.5) -> Any:
    """Sixteen 3x3 convolutions in five blocks and three linear layers."""
    nn = torch.nn
    layers: list[Any] = []
    channels = 3
    for width, count in BLOCKS:
        for _convolution in range(count):
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    model = nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d((7, 7)),
        nn.Flatten(),
        nn.Linear(512 * 7 * 7, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Linear(4096, CLASSES),
    )
    initialize(torch, model)
    return model


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD with the paper's 0.01 for batches of 256, scaled to the size of these."""
    return sgd(torch, model, lr=0.01 * BATCH / 256)
