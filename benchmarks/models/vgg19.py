"""VGG-19: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2014."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images
from models._images import sgd as make_optimizer

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
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
            nn.init.zeros_(module.bias)
    return model


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)
