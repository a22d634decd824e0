"""U-Net."""

from __future__ import annotations

from typing import Any

from taeda_models._layers import ConvNorm
from taeda_registry.slots import nn, tensor

__all__ = ["UNet"]


def _two(channels: int, out: int) -> Any:
    """Two 3x3 convolutions."""
    return nn.Sequential(ConvNorm(channels, out), ConvNorm(out, out))


class UNet(nn.Module):
    """Segments images: (N, channels, H, W) to (N, num_classes, H, W), sizes that 2^depth divides.

    Convolutions keep the image's size and have batch normalisation, which the paper's have not.

    Args:
        channels: Channels of the images.
        num_classes: Classes of the pixels.
        width: Channels of the first level; each further one has twice as many.
        depth: Levels below the first.

    Raises:
        ValueError: In the call, height or width is no multiple of 2^depth.

    Source: Ronneberger et al., "U-Net", 2015.

    Example:
        >>> UNet(1, 2, width=8, depth=2)(taeda.zeros(1, 1, 32, 32)).shape
        Size([1, 2, 32, 32])
    """

    def __init__(self, channels: int = 3, num_classes: int = 2, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(_two(a, b) for a, b in zip([channels, *widths], widths, strict=False))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * narrow, narrow, kernel_size=2, stride=2)
            for narrow in reversed(widths[:-1])
        )
        self.join = nn.ModuleList(_two(2 * narrow, narrow) for narrow in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, num_classes, kernel_size=1)

    def forward(self, x: Any) -> Any:
        multiple = 1 << len(self.up)
        if x.shape[-1] % multiple or x.shape[-2] % multiple:
            raise ValueError(f"UNet: height and width must be multiples of {multiple}, got {tuple(x.shape)}")
        levels = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x)
            levels.append(x)
        levels.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(tensor.cat([levels.pop(), up(x)], dim=1))
        return self.head(x)
