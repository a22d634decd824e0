"""ResNet, ResNeXt and wide ResNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda_models._layers import Norm, initialize, pooled
from taeda_registry.slots import nn

__all__ = [
    "BasicBlock", "Bottleneck", "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d", "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip


class _Block(nn.Module):
    """A residual block: the convolutions that a subclass defines, and the way around them."""

    expansion = 1

    def _around(self, channels: int, width: int, stride: int, norm: Norm) -> None:
        """Makes the way around: a projection where the shape changes."""
        out = width * self.expansion
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            shortcut = nn.Conv2d(channels, out, kernel_size=1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, norm(out))

    def _joined(self, x: Any, identity: Any) -> Any:
        x += identity if self.downsample is None else self.downsample(identity)
        return self.relu(x)


class BasicBlock(_Block):
    """Two 3x3 convolutions.

    Args:
        channels: Channels of the input.
        width: Channels of the output.
        stride: Step of the first convolution.
        groups: Must be 1, as ``base_width`` 64 and ``dilation`` 1.
        base_width: See ``groups``.
        dilation: See ``groups``.
        norm: Class of the normalisation.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        stride: int = 1,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm: Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64 or dilation != 1:
            raise ValueError(
                f"BasicBlock has groups=1, base_width=64 and dilation=1, got {groups}, {base_width} and {dilation}"
            )
        self.conv1 = nn.Conv2d(channels, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False)
        self.bn2 = norm(width)
        self._around(channels, width, stride, norm)

    def forward(self, x: Any) -> Any:
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self._joined(inner, x)


class Bottleneck(_Block):
    """A 3x3 convolution between two 1x1 ones; the stride stands at the 3x3 one.

    Args:
        channels: Channels of the input.
        width: A quarter of the channels of the output.
        stride: Step of the 3x3 convolution.
        groups: Its groups.
        base_width: Its channels in a group, per 64 of ``width``.
        dilation: Distance between its window's elements.
        norm: Class of the normalisation.
    """

    expansion = 4

    def __init__(
        self,
        channels: int,
        width: int,
        stride: int = 1,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm: Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        inner = int(width * base_width / 64) * groups
        self.conv1 = nn.Conv2d(channels, inner, kernel_size=1, bias=False)
        self.bn1 = norm(inner)
        settings = {
            "stride": stride,
            "padding": dilation,
            "dilation": dilation,
            "groups": groups,
            "bias": False,
        }
        self.conv2 = nn.Conv2d(inner, inner, kernel_size=3, **settings)
        self.bn2 = norm(inner)
        self.conv3 = nn.Conv2d(inner, width * self.expansion, kernel_size=1, bias=False)
        self.bn3 = norm(width * self.expansion)
        self._around(channels, width, stride, norm)

    def forward(self, x: Any) -> Any:
        inner = self.relu(self.bn1(self.conv1(x)))
        inner = self.relu(self.bn2(self.conv2(inner)))
        return self._joined(self.bn3(self.conv3(inner)), x)


class ResNet(nn.Module):
    """Four stages of residual blocks: (N, 3, H, W) to (N, num_classes).

    Args:
        block: `BasicBlock` or `Bottleneck`.
        layers: Blocks of each stage.
        num_classes: Classes.
        zero_init_residual: Whether every block begins as the identity.
        groups: Groups of the 3x3 convolutions.
        width_per_group: Their channels in a group, per 64 of the stage's width.
        replace_stride_with_dilation: For each of the last three stages, whether it keeps the image's size.
        norm_layer: Class of the normalisation.

    Source: He et al., "Deep Residual Learning for Image Recognition", 2015; Xie et al., "Aggregated Residual
    Transformations for Deep Neural Networks", 2016; keys of torchvision.

    Example:
        >>> ResNet(BasicBlock, (2, 2, 2, 2))(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        block: type[_Block],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] = (False, False, False),
        norm_layer: Norm = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        if len(replace_stride_with_dilation) != 3:
            raise ValueError(
                f"ResNet: replace_stride_with_dilation must have 3 elements, got {replace_stride_with_dilation}"
            )
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        channels, dilation = 64, 1
        settings = {"groups": groups, "base_width": width_per_group, "norm": norm_layer}
        kept = (False, *replace_stride_with_dilation)
        for i, (count, dilate) in enumerate(zip(layers, kept, strict=True)):
            width, stride = 64 << i, 1 if i == 0 or dilate else 2
            blocks = [block(channels, width, stride, dilation=dilation, **settings)]
            dilation *= 2 if dilate else 1
            channels = width * block.expansion
            blocks += [block(channels, width, dilation=dilation, **settings) for _ in range(count - 1)]
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, num_classes)
        initialize(self, linear_std=None)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, _Block):
                    last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                    nn.init.zeros_(last.weight)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(pooled(x))


def resnet18(**options: Any) -> ResNet:
    """ResNet of 18 layers."""
    return ResNet(BasicBlock, (2, 2, 2, 2), **options)


def resnet34(**options: Any) -> ResNet:
    """ResNet of 34 layers."""
    return ResNet(BasicBlock, (3, 4, 6, 3), **options)


def resnet50(**options: Any) -> ResNet:
    """ResNet of 50 layers."""
    return ResNet(Bottleneck, (3, 4, 6, 3), **options)


def resnet101(**options: Any) -> ResNet:
    """ResNet of 101 layers."""
    return ResNet(Bottleneck, (3, 4, 23, 3), **options)


def resnet152(**options: Any) -> ResNet:
    """ResNet of 152 layers."""
    return ResNet(Bottleneck, (3, 8, 36, 3), **options)


def resnext50_32x4d(**options: Any) -> ResNet:
    """ResNeXt of 50 layers, 32 groups of 4."""
    return resnet50(groups=32, width_per_group=4, **options)


def resnext101_32x8d(**options: Any) -> ResNet:
    """ResNeXt of 101 layers, 32 groups of 8."""
    return resnet101(groups=32, width_per_group=8, **options)


def resnext101_64x4d(**options: Any) -> ResNet:
    """ResNeXt of 101 layers, 64 groups of 4."""
    return resnet101(groups=64, width_per_group=4, **options)


def wide_resnet50_2(**options: Any) -> ResNet:
    """ResNet of 50 layers whose 3x3 convolutions are twice as wide."""
    return resnet50(width_per_group=128, **options)


def wide_resnet101_2(**options: Any) -> ResNet:
    """ResNet of 101 layers whose 3x3 convolutions are twice as wide."""
    return resnet101(width_per_group=128, **options)
