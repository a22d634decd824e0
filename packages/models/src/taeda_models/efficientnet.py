"""EfficientNet and EfficientNet v2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from taeda_models._layers import (
    ConvNorm,
    Norm,
    SqueezeExcitation,
    StochasticDepth,
    initialize,
    make_divisible,
    pooled,
    rates,
)
from taeda_registry.slots import nn

__all__ = [
    "EfficientNet", "Stage", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
    "efficientnet_b4", "efficientnet_b5", "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l",
    "efficientnet_v2_m", "efficientnet_v2_s",
]  # fmt: skip


class Stage(NamedTuple):
    """Blocks of one width; `fused` ones have one 3x3 convolution in place of a 1x1 and a depthwise one."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    out: int
    layers: int
    fused: bool = False

    def scaled(self, width: float, depth: float) -> Stage:
        """The stage of a network that is wider and deeper by these factors."""
        channels, out = make_divisible(self.channels * width), make_divisible(self.out * width)
        return self._replace(channels=channels, out=out, layers=math.ceil(self.layers * depth))


class _Block(nn.Module):
    """An inverted residual block."""

    def __init__(self, stage: Stage, channels: int, stride: int, drop: float, norm: Norm) -> None:
        super().__init__()
        conv = partial(ConvNorm, norm=norm, activation=nn.SiLU)
        expanded = make_divisible(channels * stage.expansion)
        layers: list[Any] = []
        if stage.fused:
            out = expanded if expanded != channels else stage.out
            layers.append(conv(channels, out, stage.kernel, stride))
        else:
            if expanded != channels:
                layers.append(conv(channels, expanded, 1))
            layers.append(conv(expanded, expanded, stage.kernel, stride, groups=expanded))
            layers.append(SqueezeExcitation(expanded, max(1, channels // 4), nn.SiLU))
        if not stage.fused or expanded != channels:
            layers.append(ConvNorm(expanded, stage.out, 1, norm=norm, activation=None))
        self.block = nn.Sequential(*layers)
        self.use_res_connect = stride == 1 and channels == stage.out
        self.stochastic_depth = StochasticDepth(drop)

    def forward(self, x: Any) -> Any:
        return self.stochastic_depth(self.block(x)) + x if self.use_res_connect else self.block(x)


class EfficientNet(nn.Module):
    """Stages of inverted residual blocks: (N, 3, H, W) to (N, num_classes).

    Args:
        stages: The stages, as `Stage`.
        dropout: Share of features that is dropped before the classifier.
        stochastic_depth_prob: Share of samples whose last block is dropped; it grows evenly with depth.
        num_classes: Classes.
        norm_layer: Class of the normalisation.
        last_channel: Channels of the last convolution; by default four times the last stage's.

    Source: Tan and Le, "EfficientNet", 2019, and "EfficientNetV2", 2021; keys of torchvision.

    Example:
        >>> efficientnet_b0()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Norm = nn.BatchNorm2d,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        conv = partial(ConvNorm, norm=norm_layer, activation=nn.SiLU)
        layers: list[Any] = [conv(3, stages[0].channels, stride=2)]
        drops = iter(rates(stochastic_depth_prob, sum(stage.layers for stage in stages), whole=True))
        for stage in stages:
            blocks = [_Block(stage, stage.channels, stage.stride, next(drops), norm_layer)]
            blocks += [_Block(stage, stage.out, 1, next(drops), norm_layer) for _ in range(stage.layers - 1)]
            layers.append(nn.Sequential(*blocks))
        last = 4 * stages[-1].out if last_channel is None else last_channel
        layers.append(conv(stages[-1].out, last, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout, inplace=True), nn.Linear(last, num_classes))
        initialize(self, linear_std=None)
        bound = num_classes**-0.5
        nn.init.uniform_(self.classifier[1].weight, -bound, bound)
        nn.init.zeros_(self.classifier[1].bias)

    def forward(self, x: Any) -> Any:
        return self.classifier(pooled(self.features(x)))


V1 = (
    Stage(1, 3, 1, 32, 16, 1), Stage(6, 3, 2, 16, 24, 2), Stage(6, 5, 2, 24, 40, 2), Stage(6, 3, 2, 40, 80, 3),
    Stage(6, 5, 1, 80, 112, 3), Stage(6, 5, 2, 112, 192, 4), Stage(6, 3, 1, 192, 320, 1),
)  # fmt: skip
SMALL = (
    Stage(1, 3, 1, 24, 24, 2, True), Stage(4, 3, 2, 24, 48, 4, True), Stage(4, 3, 2, 48, 64, 4, True),
    Stage(4, 3, 2, 64, 128, 6), Stage(6, 3, 1, 128, 160, 9), Stage(6, 3, 2, 160, 256, 15),
)  # fmt: skip
MEDIUM = (
    Stage(1, 3, 1, 24, 24, 3, True), Stage(4, 3, 2, 24, 48, 5, True), Stage(4, 3, 2, 48, 80, 5, True),
    Stage(4, 3, 2, 80, 160, 7), Stage(6, 3, 1, 160, 176, 14), Stage(6, 3, 2, 176, 304, 18),
    Stage(6, 3, 1, 304, 512, 5),
)  # fmt: skip
LARGE = (
    Stage(1, 3, 1, 32, 32, 4, True), Stage(4, 3, 2, 32, 64, 7, True), Stage(4, 3, 2, 64, 96, 7, True),
    Stage(4, 3, 2, 96, 192, 10), Stage(6, 3, 1, 192, 224, 19), Stage(6, 3, 2, 224, 384, 25),
    Stage(6, 3, 1, 384, 640, 7),
)  # fmt: skip


def _first(width: float, depth: float, dropout: float, **options: Any) -> EfficientNet:
    stages = [stage.scaled(width, depth) for stage in V1]
    return EfficientNet(stages, **{"dropout": dropout, **options})


def _second(stages: Sequence[Stage], dropout: float, **options: Any) -> EfficientNet:
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    return EfficientNet(stages, **{"dropout": dropout, "norm_layer": norm, "last_channel": 1280, **options})


def efficientnet_b0(**options: Any) -> EfficientNet:
    """EfficientNet B0, for images of 224 x 224."""
    return _first(1.0, 1.0, 0.2, **options)


def efficientnet_b1(**options: Any) -> EfficientNet:
    """EfficientNet B1, for images of 240 x 240."""
    return _first(1.0, 1.1, 0.2, **options)


def efficientnet_b2(**options: Any) -> EfficientNet:
    """EfficientNet B2, for images of 288 x 288."""
    return _first(1.1, 1.2, 0.3, **options)


def efficientnet_b3(**options: Any) -> EfficientNet:
    """EfficientNet B3, for images of 300 x 300."""
    return _first(1.2, 1.4, 0.3, **options)


def efficientnet_b4(**options: Any) -> EfficientNet:
    """EfficientNet B4, for images of 380 x 380."""
    return _first(1.4, 1.8, 0.4, **options)


def _slow_norm(**options: Any) -> dict[str, Any]:
    """The normalisation of the largest ones, whose averages follow slowly."""
    return {"norm_layer": partial(nn.BatchNorm2d, eps=0.001, momentum=0.01), **options}


def efficientnet_b5(**options: Any) -> EfficientNet:
    """EfficientNet B5, for images of 456 x 456."""
    return _first(1.6, 2.2, 0.4, **_slow_norm(**options))


def efficientnet_b6(**options: Any) -> EfficientNet:
    """EfficientNet B6, for images of 528 x 528."""
    return _first(1.8, 2.6, 0.5, **_slow_norm(**options))


def efficientnet_b7(**options: Any) -> EfficientNet:
    """EfficientNet B7, for images of 600 x 600."""
    return _first(2.0, 3.1, 0.5, **_slow_norm(**options))


def efficientnet_v2_s(**options: Any) -> EfficientNet:
    """The small EfficientNet v2, for images of 384 x 384."""
    return _second(SMALL, 0.2, **options)


def efficientnet_v2_m(**options: Any) -> EfficientNet:
    """The medium EfficientNet v2, for images of 480 x 480."""
    return _second(MEDIUM, 0.3, **options)


def efficientnet_v2_l(**options: Any) -> EfficientNet:
    """The large EfficientNet v2, for images of 480 x 480."""
    return _second(LARGE, 0.4, **options)
