"""DCGAN: a generator of images and its discriminator."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import nn

__all__ = ["Discriminator", "Generator"]


def _initialize(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, 0.0, 0.02)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.02)
            nn.init.zeros_(module.bias)


def _levels(size: int) -> int:
    """How often 4 is doubled to give the size."""
    levels = size.bit_length() - 3
    if levels < 1 or 4 << levels != size:
        raise ValueError(f"DCGAN: size must be a power of two of at least 8, got {size}")
    return levels


class Generator(nn.Module):
    """Images from noise: (N, latent, 1, 1) to (N, channels, size, size), values in (-1, 1).

    Args:
        latent: Numbers that an image is made of.
        features: Channels of the last hidden layer; each layer before has twice as many.
        channels: Channels of the images.
        size: Height and width of the images, a power of two of at least 8.

    Source: Radford et al., "Unsupervised Representation Learning with DCGANs", 2015; for 64 x 64 images the keys of
    PyTorch's example.

    Example:
        >>> Generator(100, 64)(taeda.randn(2, 100, 1, 1)).shape
        Size([2, 3, 64, 64])
    """

    def __init__(self, latent: int = 100, features: int = 64, channels: int = 3, size: int = 64) -> None:
        super().__init__()
        widths = [features << i for i in reversed(range(_levels(size)))]
        layers: list[Any] = []
        for i, (given, made) in enumerate(zip([latent, *widths], widths, strict=False)):
            settings = (4, 1, 0) if i == 0 else (4, 2, 1)
            layers += [
                nn.ConvTranspose2d(given, made, *settings, bias=False),
                nn.BatchNorm2d(made),
                nn.ReLU(True),
            ]
        last = nn.ConvTranspose2d(features, channels, 4, 2, 1, bias=False)
        self.main = nn.Sequential(*layers, last, nn.Tanh())
        _initialize(self)

    def forward(self, input: Any) -> Any:
        return self.main(input)


class Discriminator(nn.Module):
    """How likely images are real: (N, channels, size, size) to (N,), between 0 and 1.

    Args:
        features: Channels of the first layer; each further one has twice as many.
        channels: Channels of the images.
        size: Height and width of the images, a power of two of at least 8.

    Source: see `Generator`.

    Example:
        >>> Discriminator(64)(taeda.randn(2, 3, 64, 64)).shape
        Size([2])
    """

    def __init__(self, features: int = 64, channels: int = 3, size: int = 64) -> None:
        super().__init__()
        layers: list[Any] = [
            nn.Conv2d(channels, features, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
        ]
        width = features
        for _level in range(_levels(size) - 1):
            layers += [
                nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * width),
                nn.LeakyReLU(0.2, inplace=True),
            ]
            width *= 2
        self.main = nn.Sequential(*layers, nn.Conv2d(width, 1, 4, 1, 0, bias=False), nn.Sigmoid())
        _initialize(self)

    def forward(self, input: Any) -> Any:
        return self.main(input).view(-1)
