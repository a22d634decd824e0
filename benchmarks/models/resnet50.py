"""ResNet-50: He et al., "Deep Residual Learning for Image Recognition", 2015."""

from __future__ import annotations

from typing import Any

from models import _images
from models._images import cross_entropy as loss
from models._images import images
from models._images import sgd as make_optimizer

__all__ = ["build", "initialize", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, CLASSES = 8, 128, 1000
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def build(torch: Any, dropout: float = 0.0) -> Any:
    """Four stages of bottleneck blocks; ``dropout`` is unused."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            out = 4 * width
            self.conv1 = nn.Conv2d(channels, width, kernel_size=1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, kernel_size=3, stride=stride, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, out, kernel_size=1, bias=False)
            self.bn3 = nn.BatchNorm2d(out)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or channels != out:
                shortcut = nn.Conv2d(channels, out, kernel_size=1, stride=stride, bias=False)
                self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(out))

        def forward(self, x: Any) -> Any:
            identity = x if self.downsample is None else self.downsample(x)
            x = self.relu(self.bn1(self.conv1(x)))
            x = self.relu(self.bn2(self.conv2(x)))
            x = self.bn3(self.conv3(x))
            x += identity
            return self.relu(x)

    layers: list[Any] = [
        nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
    ]
    channels = 64
    for width, count, stride in STAGES:
        for i in range(count):
            layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(channels, CLASSES))


def initialize(torch: Any, model: Any) -> None:
    """He's weights; every block begins as the identity (Goyal et al., "Accurate, Large Minibatch SGD", 2017, 5.1)."""
    _images.initialize(torch, model)
    for module in model.modules():
        if hasattr(module, "bn3"):
            torch.nn.init.zeros_(module.bn3.weight)


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)
