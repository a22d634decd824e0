"""VGG."""

from __future__ import annotations

from typing import Any

from taeda_models._layers import initialize
from taeda_registry.slots import nn

__all__ = [
    "VGG", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip

WIDTHS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
    """Five blocks of 3x3 convolutions and three linear layers: (N, 3, H, W) to (N, num_classes), at least 32 x 32.

    Args:
        depths: Convolutions of each block.
        batch_norm: Whether batch normalisation stands behind each of them.
        num_classes: Classes.
        init_weights: Whether the weights are He's; otherwise the layers' own.
        dropout: Share of features that is dropped behind the linear layers.

    Source: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2014; keys of torchvision.

    Example:
        >>> VGG((1, 1, 2, 2, 2))(taeda.zeros(1, 3, 224, 224)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        depths: tuple[int, ...],
        batch_norm: bool = False,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        layers: list[Any] = []
        channels = 3
        for width, depth in zip(WIDTHS, depths, strict=True):
            for _convolution in range(depth):
                layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
                layers += [nn.BatchNorm2d(width)] if batch_norm else []
                layers.append(nn.ReLU(inplace=True))
                channels = width
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def vgg11(**options: Any) -> VGG:
    """VGG of 11 layers."""
    return VGG((1, 1, 2, 2, 2), **options)


def vgg11_bn(**options: Any) -> VGG:
    """VGG of 11 layers with batch normalisation."""
    return vgg11(batch_norm=True, **options)


def vgg13(**options: Any) -> VGG:
    """VGG of 13 layers."""
    return VGG((2, 2, 2, 2, 2), **options)


def vgg13_bn(**options: Any) -> VGG:
    """VGG of 13 layers with batch normalisation."""
    return vgg13(batch_norm=True, **options)


def vgg16(**options: Any) -> VGG:
    """VGG of 16 layers."""
    return VGG((2, 2, 3, 3, 3), **options)


def vgg16_bn(**options: Any) -> VGG:
    """VGG of 16 layers with batch normalisation."""
    return vgg16(batch_norm=True, **options)


def vgg19(**options: Any) -> VGG:
    """VGG of 19 layers."""
    return VGG((2, 2, 4, 4, 4), **options)


def vgg19_bn(**options: Any) -> VGG:
    """VGG of 19 layers with batch normalisation."""
    return vgg19(batch_norm=True, **options)
