"""Layers that several of the networks are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_registry.slots import nn

Norm = Callable[[int], Any]


class ConvNorm(nn.Sequential):
    """A convolution, a normalisation and an activation; 'same' padding for odd windows.

    Args:
        channels: Channels of the input.
        out: Channels of the output.
        kernel_size: Size of the window.
        stride: Steps of the window.
        groups: Groups of channels that do not see one another.
        norm: Class of the normalisation; None: there is none, and the convolution has a shift.
        activation: Class of the activation, which works in place; None: there is none.
    """

    def __init__(
        self,
        channels: int,
        out: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        norm: Norm | None = nn.BatchNorm2d,
        activation: Callable[..., Any] | None = nn.ReLU,
    ) -> None:
        settings = {"stride": stride, "padding": kernel_size // 2, "groups": groups, "bias": norm is None}
        layers = [nn.Conv2d(channels, out, kernel_size, **settings)]
        if norm is not None:
            layers.append(norm(out))
        if activation is not None:
            layers.append(activation(inplace=True))
        super().__init__(*layers)
        self.out_channels = out


class SqueezeExcitation(nn.Module):
    """Scales each channel by a number that is computed from the means of all channels.

    Args:
        channels: Channels of input and output.
        squeezed: Channels between the two maps.
        activation: Class of the activation between them.
        scale: Class of the activation behind them.

    Source: Hu et al., "Squeeze-and-Excitation Networks", 2017.
    """

    def __init__(
        self, channels: int, squeezed: int, activation: Any = nn.ReLU, scale: Any = nn.Sigmoid
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)
        self.activation = activation()
        self.scale_activation = scale()

    def forward(self, input: Any) -> Any:
        scale = self.fc2(self.activation(self.fc1(self.avgpool(input))))
        return self.scale_activation(scale) * input


class StochasticDepth(nn.Module):
    """Drops whole samples of a residual branch while training, and scales up those that stay.

    Source: Huang et al., "Deep Networks with Stochastic Depth", 2016.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"StochasticDepth: p must be between 0 and 1, got {p}")
        self.p = p

    def forward(self, input: Any) -> Any:
        if not self.training or self.p == 0.0:
            return input
        kept = input.new_empty((input.shape[0], *(1,) * (input.dim() - 1))).bernoulli_(1.0 - self.p)
        return input * (kept / (1.0 - self.p) if self.p < 1.0 else kept)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Permute(nn.Module):
    """`Tensor.permute` as a layer."""

    def __init__(self, *dims: int) -> None:
        super().__init__()
        self.dims = dims

    def forward(self, input: Any) -> Any:
        return input.permute(*self.dims)

    def extra_repr(self) -> str:
        return f"{self.dims}"


class MLP(nn.Sequential):
    """Two linear maps with GELU between them and dropout behind each."""

    def __init__(self, features: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__(
            nn.Linear(features, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, features),
            nn.Dropout(dropout),
        )
        for layer in (self[0], self[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)


def make_divisible(value: float, divisor: int = 8) -> int:
    """The multiple of ``divisor`` nearest to ``value``, but not below nine tenths of it."""
    nearest = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return nearest if nearest >= 0.9 * value else nearest + divisor


def pooled(x: Any) -> Any:
    """(N, C): means over the image."""
    return nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)


def initialize(model: Any, linear_std: float | None = 0.01) -> None:
    """He's weights for convolutions; norms are identities; linear maps are normal, or left as they are.

    Source: He et al., "Delving Deep into Rectifiers", 2015.
    """
    init = nn.init
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            init.kaiming_normal_(module.weight, mode="fan_out")
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, nn.Linear) and linear_std is not None:
            init.normal_(module.weight, 0.0, linear_std)
            init.zeros_(module.bias)


def channel_shuffle(x: Any, groups: int) -> Any:
    """Deals the channels of ``groups`` groups out in turn."""
    n, channels, height, width = x.shape
    return x.view(n, groups, channels // groups, height, width).transpose(1, 2).reshape(x.shape)


def rates(most: float, count: int, whole: bool = False) -> list[float]:
    """Dropping rates of ``count`` blocks, rising evenly from 0 to ``most``, or, ``whole``, to a step below it."""
    steps = count if whole else max(count - 1, 1)
    return [most * i / steps for i in range(count)]


__all__ = [
    "MLP",
    "ConvNorm",
    "Permute",
    "SqueezeExcitation",
    "StochasticDepth",
    "channel_shuffle",
    "initialize",
    "make_divisible",
    "pooled",
    "rates",
]
