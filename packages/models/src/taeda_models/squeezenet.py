"""SqueezeNet."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn, tensor

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]


class _Fire(nn.Module):
    """A narrowing convolution, and a 1x1 and a 3x3 one beside each other."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, kernel_size=1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, kernel_size=1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, kernel_size=3, padding=1)

    def forward(self, x: Any) -> Any:
        relu = nn.functional.relu
        x = relu(self.squeeze(x), inplace=True)
        both = [relu(self.expand1x1(x), inplace=True), relu(self.expand3x3(x), inplace=True)]
        return tensor.cat(both, 1)


class SqueezeNet(nn.Module):
    """Fire blocks and no linear layer: (N, 3, H, W) to (N, num_classes), images of at least 21 x 21.

    Args:
        version: '1_0' or '1_1', which takes less than half the time.
        num_classes: Classes.
        dropout: Share of features that is dropped before the classifier.

    Source: Iandola et al., "SqueezeNet", 2016; keys of torchvision.

    Example:
        >>> SqueezeNet()(taeda.zeros(1, 3, 64, 64)).shape
        Size([1, 1000])
    """

    # The first window, and before which of the eight blocks a pooling stands.
    VERSIONS = {"1_0": (96, 7, (0, 3, 7)), "1_1": (64, 3, (0, 2, 4))}
    SQUEEZED = (16, 16, 32, 32, 48, 48, 64, 64)

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in self.VERSIONS:
            raise ValueError(f"SqueezeNet: version must be '1_0' or '1_1', got {version!r}")
        channels, size, pools = self.VERSIONS[version]
        layers: list[Any] = [nn.Conv2d(3, channels, kernel_size=size, stride=2), nn.ReLU(inplace=True)]
        for i, squeezed in enumerate(self.SQUEEZED):
            if i in pools:
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            layers.append(_Fire(channels, squeezed, 4 * squeezed))
            channels = 8 * squeezed
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(channels, num_classes, kernel_size=1)
        pool = nn.AdaptiveAvgPool2d((1, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), last, nn.ReLU(inplace=True), pool)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(last.weight, mean=0.0, std=0.01)

    def forward(self, x: Any) -> Any:
        return self.classifier(self.features(x)).flatten(1)


def squeezenet1_0(**options: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return SqueezeNet("1_0", **options)


def squeezenet1_1(**options: Any) -> SqueezeNet:
    """SqueezeNet 1.1."""
    return SqueezeNet("1_1", **options)
