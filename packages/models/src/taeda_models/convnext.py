"""ConvNeXt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_models._layers import Permute, StochasticDepth, rates
from taeda_registry.slots import nn, tensor

__all__ = ["ConvNeXt", "convnext_base", "convnext_large", "convnext_small", "convnext_tiny"]


class _ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of (N, C, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-6)

    def forward(self, x: Any) -> Any:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class _Block(nn.Module):
    """A depthwise 7x7 convolution and a perceptron over channels, scaled, with a way around."""

    def __init__(self, channels: int, scale: float, drop: float) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(channels, channels, kernel_size=7, padding=3, groups=channels),
            Permute(0, 2, 3, 1),
            nn.LayerNorm(channels, eps=1e-6),
            nn.Linear(channels, 4 * channels),
            nn.GELU(),
            nn.Linear(4 * channels, channels),
            Permute(0, 3, 1, 2),
        )
        self.layer_scale = nn.Parameter(tensor.full((channels, 1, 1), scale))
        self.stochastic_depth = StochasticDepth(drop)

    def forward(self, x: Any) -> Any:
        return x + self.stochastic_depth(self.layer_scale * self.block(x))


class ConvNeXt(nn.Module):
    """A convolutional network in the manner of Transformers: (N, 3, H, W) to (N, num_classes), at least 32 x 32.

    Args:
        depths: Blocks of each stage.
        widths: Channels of each stage.
        stochastic_depth_prob: Share of samples whose last block is dropped; it grows evenly with depth.
        layer_scale: What the residual branches are multiplied with at first.
        num_classes: Classes.

    Source: Liu et al., "A ConvNet for the 2020s", 2022; keys of torchvision.

    Example:
        >>> ConvNeXt((1, 1, 1, 1), (16, 32, 64, 128))(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        depths: Sequence[int],
        widths: Sequence[int],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        stem = nn.Conv2d(3, widths[0], kernel_size=4, stride=4)
        layers: list[Any] = [nn.Sequential(stem, _ChannelNorm(widths[0]))]
        drops = iter(rates(stochastic_depth_prob, sum(depths)))
        for i, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if i:
                halving = nn.Conv2d(widths[i - 1], width, kernel_size=2, stride=2)
                layers.append(nn.Sequential(_ChannelNorm(widths[i - 1]), halving))
            layers.append(nn.Sequential(*(_Block(width, layer_scale, next(drops)) for _ in range(depth))))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = nn.Linear(widths[-1], num_classes)
        self.classifier = nn.Sequential(_ChannelNorm(widths[-1]), nn.Flatten(1), last)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(depth: int, width: int, drop: float, **options: Any) -> ConvNeXt:
    widths = [width << i for i in range(4)]
    return ConvNeXt((3, 3, depth, 3), widths, **{"stochastic_depth_prob": drop, **options})


def convnext_tiny(**options: Any) -> ConvNeXt:
    """ConvNeXt-T."""
    return _convnext(9, 96, 0.1, **options)


def convnext_small(**options: Any) -> ConvNeXt:
    """ConvNeXt-S."""
    return _convnext(27, 96, 0.4, **options)


def convnext_base(**options: Any) -> ConvNeXt:
    """ConvNeXt-B."""
    return _convnext(27, 128, 0.5, **options)


def convnext_large(**options: Any) -> ConvNeXt:
    """ConvNeXt-L."""
    return _convnext(27, 192, 0.5, **options)
