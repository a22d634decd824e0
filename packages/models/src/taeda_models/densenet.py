"""DenseNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_models._layers import pooled
from taeda_registry.slots import nn, tensor

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]


class _Layer(nn.Module):
    """A narrowing 1x1 and a 3x3 convolution of everything that came before."""

    def __init__(self, channels: int, growth: int, narrowed: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, narrowed, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(narrowed)
        self.conv2 = nn.Conv2d(narrowed, growth, kernel_size=3, padding=1, bias=False)
        self.dropout = dropout

    def forward(self, x: Any) -> Any:
        relu = nn.functional.relu
        x = self.conv1(relu(self.norm1(x), inplace=True))
        x = self.conv2(relu(self.norm2(x), inplace=True))
        return nn.functional.dropout(x, self.dropout, self.training) if self.dropout else x


class _Block(nn.ModuleDict):
    """Layers whose results are appended to the features."""

    def __init__(self, count: int, channels: int, growth: int, bn_size: int, dropout: float) -> None:
        super().__init__()
        for i in range(count):
            layer = _Layer(channels + i * growth, growth, bn_size * growth, dropout)
            self[f"denselayer{i + 1}"] = layer

    def forward(self, x: Any) -> Any:
        features = [x]
        for layer in self.values():
            features.append(layer(tensor.cat(features, 1)))
        return tensor.cat(features, 1)


class _Transition(nn.Module):
    """Half the channels, half the image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels // 2, kernel_size=1, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.conv(nn.functional.relu(self.norm(x), inplace=True))
        return nn.functional.avg_pool2d(x, kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Blocks whose layers see all results before them: (N, 3, H, W) to (N, num_classes), at least 29 x 29.

    Args:
        growth_rate: Channels that each layer adds.
        block_config: Layers of each block.
        num_init_features: Channels of the first convolution.
        bn_size: Channels between a layer's two convolutions, in multiples of ``growth_rate``.
        drop_rate: Share of a layer's result that is dropped.
        num_classes: Classes.

    Source: Huang et al., "Densely Connected Convolutional Networks", 2016; keys of torchvision.

    Example:
        >>> DenseNet()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = num_init_features
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1))
        for i, count in enumerate(block_config, 1):
            block = _Block(count, channels, growth_rate, bn_size, drop_rate)
            self.features.add_module(f"denseblock{i}", block)
            channels += count * growth_rate
            if i < len(block_config):
                self.features.add_module(f"transition{i}", _Transition(channels))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(pooled(nn.functional.relu(self.features(x), inplace=True)))


def densenet121(**options: Any) -> DenseNet:
    """DenseNet of 121 layers."""
    return DenseNet(32, (6, 12, 24, 16), 64, **options)


def densenet161(**options: Any) -> DenseNet:
    """DenseNet of 161 layers."""
    return DenseNet(48, (6, 12, 36, 24), 96, **options)


def densenet169(**options: Any) -> DenseNet:
    """DenseNet of 169 layers."""
    return DenseNet(32, (6, 12, 32, 32), 64, **options)


def densenet201(**options: Any) -> DenseNet:
    """DenseNet of 201 layers."""
    return DenseNet(32, (6, 12, 48, 32), 64, **options)
