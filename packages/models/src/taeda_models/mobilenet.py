"""MobileNet v1, v2 and v3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from taeda_models._layers import ConvNorm, SqueezeExcitation, initialize, make_divisible, pooled
from taeda_registry.slots import nn

__all__ = [
    "MobileNetV1", "MobileNetV2", "MobileNetV3", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_large",
    "mobilenet_v3_small",
]  # fmt: skip


class MobileNetV1(nn.Module):
    """A convolution and thirteen pairs of depthwise and pointwise ones: (N, 3, H, W) to (N, num_classes).

    Args:
        num_classes: Classes.
        width_mult: Factor of all widths.

    Source: Howard et al., "MobileNets", 2017.

    Example:
        >>> MobileNetV1()(taeda.zeros(1, 3, 128, 128)).shape
        Size([1, 1000])
    """

    BLOCKS = (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1),
    )  # fmt: skip

    def __init__(self, num_classes: int = 1000, width_mult: float = 1.0) -> None:
        super().__init__()
        channels = make_divisible(32 * width_mult)
        layers = [ConvNorm(3, channels, stride=2)]
        for width, stride in self.BLOCKS:
            out = make_divisible(width * width_mult)
            layers += [ConvNorm(channels, channels, 3, stride, groups=channels), ConvNorm(channels, out, 1)]
            channels = out
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, num_classes)
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(pooled(self.features(x)))


class _InvertedV2(nn.Module):
    """A depthwise convolution between a widening and a narrowing one."""

    def __init__(self, channels: int, out: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = round(channels * expansion)
        conv = partial(ConvNorm, activation=nn.ReLU6)
        layers = [conv(channels, hidden, 1)] if expansion != 1 else []
        layers += [
            conv(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, out, 1, bias=False),
            nn.BatchNorm2d(out),
        ]
        self.conv = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and channels == out

    def forward(self, x: Any) -> Any:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Inverted residual blocks with linear ends: (N, 3, H, W) to (N, num_classes).

    Args:
        num_classes: Classes.
        width_mult: Factor of all widths.
        dropout: Share of features that is dropped before the classifier.

    Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018; keys of torchvision.

    Example:
        >>> MobileNetV2()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    # (expansion, channels, blocks, stride of the first)
    STAGES = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    )  # fmt: skip

    def __init__(self, num_classes: int = 1000, width_mult: float = 1.0, dropout: float = 0.2) -> None:
        super().__init__()
        channels = make_divisible(32 * width_mult)
        layers: list[Any] = [ConvNorm(3, channels, stride=2, activation=nn.ReLU6)]
        for expansion, width, count, stride in self.STAGES:
            out = make_divisible(width * width_mult)
            for i in range(count):
                layers.append(_InvertedV2(channels, out, stride if i == 0 else 1, expansion))
                channels = out
        self.last_channel = make_divisible(1280 * max(1.0, width_mult))
        layers.append(ConvNorm(channels, self.last_channel, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes))
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(pooled(self.features(x)))


class Row(NamedTuple):
    """One block of MobileNet v3, as the paper's tables give it."""

    kernel: int
    expanded: int
    out: int
    squeezes: bool
    activation: str
    stride: int


class _InvertedV3(nn.Module):
    """An inverted residual block that may squeeze and excite."""

    def __init__(self, channels: int, row: Row, width_mult: float, norm: Any) -> None:
        super().__init__()
        expanded, out = make_divisible(row.expanded * width_mult), make_divisible(row.out * width_mult)
        conv = partial(ConvNorm, norm=norm, activation=nn.Hardswish if row.activation == "HS" else nn.ReLU)
        layers: list[Any] = [conv(channels, expanded, 1)] if expanded != channels else []
        layers.append(conv(expanded, expanded, row.kernel, row.stride, groups=expanded))
        if row.squeezes:
            squeezed = make_divisible(expanded // 4)
            layers.append(SqueezeExcitation(expanded, squeezed, scale=nn.Hardsigmoid))
        layers.append(ConvNorm(expanded, out, 1, norm=norm, activation=None))
        self.block = nn.Sequential(*layers)
        self.use_res_connect = row.stride == 1 and channels == out
        self.out_channels = out

    def forward(self, x: Any) -> Any:
        return self.block(x) + x if self.use_res_connect else self.block(x)


class MobileNetV3(nn.Module):
    """Blocks found by search: (N, 3, H, W) to (N, num_classes).

    Args:
        rows: The blocks, as `Row`.
        last_channel: Features between the two linear maps of the classifier.
        num_classes: Classes.
        width_mult: Factor of all widths.
        dropout: Share of features that is dropped before the last map.

    Source: Howard et al., "Searching for MobileNetV3", 2019; keys of torchvision.

    Example:
        >>> mobilenet_v3_small()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        rows: Sequence[Row],
        last_channel: int,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        channels = make_divisible(16 * width_mult)
        layers: list[Any] = [ConvNorm(3, channels, stride=2, norm=norm, activation=nn.Hardswish)]
        for row in rows:
            layers.append(_InvertedV3(channels, row, width_mult, norm))
            channels = layers[-1].out_channels
        layers.append(ConvNorm(channels, 6 * channels, 1, norm=norm, activation=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        last_channel = make_divisible(last_channel * width_mult)
        self.classifier = nn.Sequential(
            nn.Linear(6 * channels, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        initialize(self)

    def forward(self, x: Any) -> Any:
        return self.classifier(pooled(self.features(x)))


LARGE = tuple(Row(*row) for row in (
    (3, 16, 16, False, "RE", 1), (3, 64, 24, False, "RE", 2), (3, 72, 24, False, "RE", 1),
    (5, 72, 40, True, "RE", 2), (5, 120, 40, True, "RE", 1), (5, 120, 40, True, "RE", 1),
    (3, 240, 80, False, "HS", 2), (3, 200, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1),
    (3, 184, 80, False, "HS", 1), (3, 480, 112, True, "HS", 1), (3, 672, 112, True, "HS", 1),
    (5, 672, 160, True, "HS", 2), (5, 960, 160, True, "HS", 1), (5, 960, 160, True, "HS", 1),
))  # fmt: skip
SMALL = tuple(Row(*row) for row in (
    (3, 16, 16, True, "RE", 2), (3, 72, 24, False, "RE", 2), (3, 88, 24, False, "RE", 1),
    (5, 96, 40, True, "HS", 2), (5, 240, 40, True, "HS", 1), (5, 240, 40, True, "HS", 1),
    (5, 120, 48, True, "HS", 1), (5, 144, 48, True, "HS", 1), (5, 288, 96, True, "HS", 2),
    (5, 576, 96, True, "HS", 1), (5, 576, 96, True, "HS", 1),
))  # fmt: skip


def mobilenet_v1(**options: Any) -> MobileNetV1:
    """`MobileNetV1` with these options."""
    return MobileNetV1(**options)


def mobilenet_v2(**options: Any) -> MobileNetV2:
    """`MobileNetV2` with these options."""
    return MobileNetV2(**options)


def mobilenet_v3_large(**options: Any) -> MobileNetV3:
    """The large MobileNet v3."""
    return MobileNetV3(LARGE, 1280, **options)


def mobilenet_v3_small(**options: Any) -> MobileNetV3:
    """The small MobileNet v3."""
    return MobileNetV3(SMALL, 1024, **options)
