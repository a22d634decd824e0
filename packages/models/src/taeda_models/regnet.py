"""RegNet."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, NamedTuple

from taeda_models._layers import ConvNorm, SqueezeExcitation, initialize, make_divisible, pooled
from taeda_registry.slots import nn

__all__ = [
    "RegNet", "Widths", "regnet_x_1_6gf", "regnet_x_3_2gf", "regnet_x_8gf", "regnet_x_16gf", "regnet_x_32gf",
    "regnet_x_400mf", "regnet_x_800mf", "regnet_y_1_6gf", "regnet_y_3_2gf", "regnet_y_8gf", "regnet_y_16gf",
    "regnet_y_32gf", "regnet_y_128gf", "regnet_y_400mf", "regnet_y_800mf",
]  # fmt: skip


class Widths(NamedTuple):
    """The paper's description of a network: widths grow linearly and are rounded to steps.

    Attributes:
        depth: Blocks.
        w_0: Width of the first one.
        w_a: Growth a block.
        w_m: Ratio of neighbouring steps.
        group_width: Channels in a group.
        se_ratio: Channels between the maps of squeeze and excitation, as a share of a block's input; 0: there is none.
    """

    depth: int
    w_0: int
    w_a: float
    w_m: float
    group_width: int
    se_ratio: float = 0.0

    def stages(self) -> list[tuple[int, int, int]]:
        """(width, blocks, channels in a group) of every stage; widths are multiples of the group's."""
        widths = []
        for i in range(self.depth):
            step = round(math.log((self.w_0 + self.w_a * i) / self.w_0) / math.log(self.w_m))
            widths.append(8 * round(self.w_0 * self.w_m**step / 8))
        counted = [(width, len(list(same))) for width, same in groupby(widths)]
        groups = [min(self.group_width, width) for width, _ in counted]
        return [
            (make_divisible(width, group), count, group)
            for (width, count), group in zip(counted, groups, strict=True)
        ]


class _Transform(nn.Sequential):
    """A 3x3 convolution in groups between two 1x1 ones."""

    def __init__(self, channels: int, width: int, stride: int, group: int, se_ratio: float) -> None:
        super().__init__()
        self.a = ConvNorm(channels, width, 1)
        self.b = ConvNorm(width, width, 3, stride, groups=width // group)
        if se_ratio:
            self.se = SqueezeExcitation(width, round(se_ratio * channels))
        self.c = ConvNorm(width, width, 1, activation=None)


class _Block(nn.Module):
    """A transform and the way around it."""

    def __init__(self, channels: int, width: int, stride: int, group: int, se_ratio: float) -> None:
        super().__init__()
        changes = channels != width or stride != 1
        self.proj = ConvNorm(channels, width, 1, stride, activation=None) if changes else None
        self.f = _Transform(channels, width, stride, group, se_ratio)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        around = x if self.proj is None else self.proj(x)
        return self.activation(around + self.f(x))


class RegNet(nn.Module):
    """Stages of widths that one rule gives: (N, 3, H, W) to (N, num_classes).

    Args:
        widths: The rule.
        num_classes: Classes.
        stem_width: Channels of the first convolution.

    Source: Radosavovic et al., "Designing Network Design Spaces", 2020; keys of torchvision.

    Example:
        >>> regnet_x_400mf()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(self, widths: Widths, num_classes: int = 1000, stem_width: int = 32) -> None:
        super().__init__()
        self.stem = ConvNorm(3, stem_width, 3, 2)
        channels = stem_width
        self.trunk_output = nn.Sequential()
        for i, (width, count, group) in enumerate(widths.stages(), 1):
            stage = nn.Sequential()
            for j in range(count):
                block = _Block(channels, width, 2 if j == 0 else 1, group, widths.se_ratio)
                stage.add_module(f"block{i}-{j}", block)
                channels = width
            self.trunk_output.add_module(f"block{i}", stage)
        self.fc = nn.Linear(channels, num_classes)
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.fc(pooled(self.trunk_output(self.stem(x))))


def regnet_y_400mf(**options: Any) -> RegNet:
    """RegNet Y of 0.4 GF."""
    return RegNet(Widths(16, 48, 27.89, 2.09, 8, 0.25), **options)


def regnet_y_800mf(**options: Any) -> RegNet:
    """RegNet Y of 0.8 GF."""
    return RegNet(Widths(14, 56, 38.84, 2.4, 16, 0.25), **options)


def regnet_y_1_6gf(**options: Any) -> RegNet:
    """RegNet Y of 1.6 GF."""
    return RegNet(Widths(27, 48, 20.71, 2.65, 24, 0.25), **options)


def regnet_y_3_2gf(**options: Any) -> RegNet:
    """RegNet Y of 3.2 GF."""
    return RegNet(Widths(21, 80, 42.63, 2.66, 24, 0.25), **options)


def regnet_y_8gf(**options: Any) -> RegNet:
    """RegNet Y of 8 GF."""
    return RegNet(Widths(17, 192, 76.82, 2.19, 56, 0.25), **options)


def regnet_y_16gf(**options: Any) -> RegNet:
    """RegNet Y of 16 GF."""
    return RegNet(Widths(18, 200, 106.23, 2.48, 112, 0.25), **options)


def regnet_y_32gf(**options: Any) -> RegNet:
    """RegNet Y of 32 GF."""
    return RegNet(Widths(20, 232, 115.89, 2.53, 232, 0.25), **options)


def regnet_y_128gf(**options: Any) -> RegNet:
    """RegNet Y of 128 GF."""
    return RegNet(Widths(27, 456, 160.83, 2.52, 264, 0.25), **options)


def regnet_x_400mf(**options: Any) -> RegNet:
    """RegNet X of 0.4 GF."""
    return RegNet(Widths(22, 24, 24.48, 2.54, 16), **options)


def regnet_x_800mf(**options: Any) -> RegNet:
    """RegNet X of 0.8 GF."""
    return RegNet(Widths(16, 56, 35.73, 2.28, 16), **options)


def regnet_x_1_6gf(**options: Any) -> RegNet:
    """RegNet X of 1.6 GF."""
    return RegNet(Widths(18, 80, 34.01, 2.25, 24), **options)


def regnet_x_3_2gf(**options: Any) -> RegNet:
    """RegNet X of 3.2 GF."""
    return RegNet(Widths(25, 88, 26.31, 2.25, 48), **options)


def regnet_x_8gf(**options: Any) -> RegNet:
    """RegNet X of 8 GF."""
    return RegNet(Widths(23, 80, 49.56, 2.88, 120), **options)


def regnet_x_16gf(**options: Any) -> RegNet:
    """RegNet X of 16 GF."""
    return RegNet(Widths(22, 216, 55.59, 2.1, 128), **options)


def regnet_x_32gf(**options: Any) -> RegNet:
    """RegNet X of 32 GF."""
    return RegNet(Widths(23, 320, 69.86, 2.0, 168), **options)
