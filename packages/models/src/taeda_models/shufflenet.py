"""ShuffleNet v2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_models._layers import ConvNorm, channel_shuffle
from taeda_registry.slots import nn, tensor

__all__ = [
    "ShuffleNetV2", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0",
]  # fmt: skip


class _Unit(nn.Module):
    """Two branches whose channels are dealt out anew; without a stride one of them is the input's half itself."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        half = out // 2
        self.stride = stride
        taken = channels if stride > 1 else half
        self.branch1 = nn.Sequential(*self._depthwise(channels, half, stride) if stride > 1 else ())
        narrowing = ConvNorm(taken, half, 1)
        self.branch2 = nn.Sequential(*narrowing, *self._depthwise(half, half, stride))

    @staticmethod
    def _depthwise(channels: int, out: int, stride: int) -> list[Any]:
        first = ConvNorm(channels, channels, 3, stride, groups=channels, activation=None)
        return [*first, *ConvNorm(channels, out, 1)]

    def forward(self, x: Any) -> Any:
        if self.stride == 1:
            kept, x = x.chunk(2, dim=1)
        else:
            kept = self.branch1(x)
        return channel_shuffle(tensor.cat((kept, self.branch2(x)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    """Units of depthwise convolutions with shuffled channels: (N, 3, H, W) to (N, num_classes).

    Args:
        stages_repeats: Units of each of the three stages.
        stages_out_channels: Channels of the first convolution, of the stages and of the last convolution.
        num_classes: Classes.

    Source: Ma et al., "ShuffleNet V2", 2018; keys of torchvision.

    Example:
        >>> shufflenet_v2_x0_5()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self, stages_repeats: Sequence[int], stages_out_channels: Sequence[int], num_classes: int = 1000
    ) -> None:
        super().__init__()
        if len(stages_repeats) != 3 or len(stages_out_channels) != 5:
            raise ValueError(
                "ShuffleNetV2: stages_repeats must have 3 and stages_out_channels 5 elements, got "
                f"{len(stages_repeats)} and {len(stages_out_channels)}"
            )
        channels, *widths, last = stages_out_channels
        self.conv1 = ConvNorm(3, channels, stride=2)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (count, width) in enumerate(zip(stages_repeats, widths, strict=True), 2):
            units = [_Unit(channels, width, 2), *(_Unit(width, width, 1) for _ in range(count - 1))]
            setattr(self, f"stage{i}", nn.Sequential(*units))
            channels = width
        self.conv5 = ConvNorm(channels, last, 1)
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.conv1(x))
        x = self.conv5(self.stage4(self.stage3(self.stage2(x))))
        return self.fc(x.mean([2, 3]))


def shufflenet_v2_x0_5(**options: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of half the width."""
    return ShuffleNetV2((4, 8, 4), (24, 48, 96, 192, 1024), **options)


def shufflenet_v2_x1_0(**options: Any) -> ShuffleNetV2:
    """ShuffleNet v2."""
    return ShuffleNetV2((4, 8, 4), (24, 116, 232, 464, 1024), **options)


def shufflenet_v2_x1_5(**options: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of 1.5 times the width."""
    return ShuffleNetV2((4, 8, 4), (24, 176, 352, 704, 1024), **options)


def shufflenet_v2_x2_0(**options: Any) -> ShuffleNetV2:
    """ShuffleNet v2 of twice the width."""
    return ShuffleNetV2((4, 8, 4), (24, 244, 488, 976, 2048), **options)
