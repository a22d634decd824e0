"""GoogLeNet."""

from __future__ import annotations

from typing import Any, NamedTuple

from taeda_registry.slots import nn, tensor

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "googlenet"]


class GoogLeNetOutputs(NamedTuple):
    """What a `GoogLeNet` with auxiliary classifiers gives while training."""

    logits: Any
    aux_logits2: Any
    aux_logits1: Any


class _Convolution(nn.Module):
    """A convolution, batch normalisation and a rectifier."""

    def __init__(self, channels: int, out: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=0.001)

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)


class _Inception(nn.Module):
    """Four branches side by side: a 1x1 window, two of 3x3 and a pooling."""

    def __init__(
        self, channels: int, one: int, reduced: int, three: int, reduced2: int, five: int, pool: int
    ) -> None:
        super().__init__()
        self.branch1 = _Convolution(channels, one, 1)
        self.branch2 = nn.Sequential(_Convolution(channels, reduced, 1), _Convolution(reduced, three, 3))
        # The published network has 3x3 windows here, not the paper's 5x5.
        self.branch3 = nn.Sequential(_Convolution(channels, reduced2, 1), _Convolution(reduced2, five, 3))
        pooling = nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True)
        self.branch4 = nn.Sequential(pooling, _Convolution(channels, pool, 1))

    def forward(self, x: Any) -> Any:
        return tensor.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class _Auxiliary(nn.Module):
    """A classifier halfway."""

    def __init__(self, channels: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        self.conv = _Convolution(channels, 128, 1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Any) -> Any:
        x = self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
        return self.fc2(self.dropout(nn.functional.relu(self.fc1(x), inplace=True)))


class GoogLeNet(nn.Module):
    """Nine inception blocks: (N, 3, H, W) to (N, num_classes), images of at least 15 x 15.

    While training with auxiliary classifiers the result is a `GoogLeNetOutputs`.

    Args:
        num_classes: Classes.
        aux_logits: Whether there are the two classifiers halfway.
        dropout: Share of features that is dropped before the classifier.
        dropout_aux: The same of the classifiers halfway.

    Source: Szegedy et al., "Going Deeper with Convolutions", 2014; keys of torchvision.

    Example:
        >>> GoogLeNet()(taeda.zeros(2, 3, 64, 64)).aux_logits1.shape
        Size([2, 1000])
    """

    BLOCKS = {
        "3a": (192, 64, 96, 128, 16, 32, 32),
        "3b": (256, 128, 128, 192, 32, 96, 64),
        "4a": (480, 192, 96, 208, 16, 48, 64),
        "4b": (512, 160, 112, 224, 24, 64, 64),
        "4c": (512, 128, 128, 256, 24, 64, 64),
        "4d": (512, 112, 144, 288, 32, 64, 64),
        "4e": (528, 256, 160, 320, 32, 128, 128),
        "5a": (832, 256, 160, 320, 32, 128, 128),
        "5b": (832, 384, 192, 384, 48, 128, 128),
    }

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        self.aux_logits = aux_logits
        self.conv1 = _Convolution(3, 64, 7, stride=2)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = _Convolution(64, 64, 1)
        self.conv3 = _Convolution(64, 192, 3)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        for name, sizes in self.BLOCKS.items():
            setattr(self, f"inception{name}", _Inception(*sizes))
        self.aux1 = _Auxiliary(512, num_classes, dropout_aux) if aux_logits else None
        self.aux2 = _Auxiliary(528, num_classes, dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(1024, num_classes)
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, mean=0.0, std=0.01, a=-2, b=2)

    def forward(self, x: Any) -> Any:
        x = self.maxpool1(self.conv1(x))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        halfway = self.training and self.aux1 is not None and self.aux2 is not None
        x = self.inception4a(x)
        aux1 = self.aux1(x) if halfway else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if halfway else None
        x = self.maxpool4(self.inception4e(x))
        x = self.avgpool(self.inception5b(self.inception5a(x))).flatten(1)
        logits = self.fc(self.dropout(x))
        return GoogLeNetOutputs(logits, aux2, aux1) if halfway else logits


def googlenet(**options: Any) -> GoogLeNet:
    """`GoogLeNet` with these options."""
    return GoogLeNet(**options)
