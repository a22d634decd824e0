"""MobileNet v1: Howard et al., "MobileNets", 2017."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images, initialize, sgd

__all__ = ["build", "initialize", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 16, 128, 1000
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def build(torch: Any, dropout: float = 0.0) -> Any:
    """A convolution and thirteen pairs of depthwise and pointwise ones; ``dropout`` is unused."""
    nn = torch.nn

    def convolution(channels: int, out: int, size: int, stride: int, groups: int = 1) -> list[Any]:
        settings = {"stride": stride, "padding": size // 2, "groups": groups, "bias": False}
        return [nn.Conv2d(channels, out, size, **settings), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]

    layers = convolution(3, 32, 3, 2)
    channels = 32
    for out, stride in BLOCKS:
        layers += convolution(channels, channels, 3, stride, channels)
        layers += convolution(channels, out, 1, 1)
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)


def make_optimizer(torch: Any, model: Any) -> Any:
    """SGD at the start of a warm-up: from fresh weights larger steps amplify every rounding error tenfold a step."""
    return sgd(torch, model, lr=1e-6)
