"""Swin Transformer and Swin Transformer v2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taeda_models._layers import MLP, Permute, StochasticDepth, rates
from taeda_registry.slots import nn, tensor

__all__ = ["SwinTransformer", "swin_b", "swin_s", "swin_t", "swin_v2_b", "swin_v2_s", "swin_v2_t"]

LARGEST_SCALE = math.log(100.0)


def _offsets(window: int) -> Any:
    """(window^4,): for each pair of places in a window, which of the (2 window - 1)^2 distances they have."""
    places = tensor.arange(window)
    rows, columns = places.repeat_interleave(window), places.repeat(window)
    down = rows[:, None] - rows[None, :] + window - 1
    right = columns[:, None] - columns[None, :] + window - 1
    return (down * (2 * window - 1) + right).flatten()


def _log_distances(window: int) -> Any:
    """(1, 2 window - 1, 2 window - 1, 2): distances, brought to [-8, 8] and then to a logarithmic scale."""
    line = tensor.arange(1 - window, window).to(tensor.float32) / (window - 1) * 8
    line = line.sign() * (line.abs() + 1.0).log2() / 3.0
    count = 2 * window - 1
    grid = tensor.stack([line[:, None].expand(count, count), line[None, :].expand(count, count)], dim=-1)
    return grid.unsqueeze(0)


def _windows(x: Any, window: int) -> Any:
    """(N * windows, window^2, C) of (N, H, W, C)."""
    n, height, width, channels = x.shape
    x = x.view(n, height // window, window, width // window, window, channels)
    return x.transpose(2, 3).reshape(-1, window * window, channels)


def _image(x: Any, window: int, shape: tuple[int, ...]) -> Any:
    """(N, H, W, C) of its windows."""
    n, height, width, channels = shape
    x = x.view(n, height // window, width // window, window, window, channels)
    return x.transpose(2, 3).reshape(shape)


def _mask(height: int, width: int, window: int, shifts: tuple[int, int], like: Any) -> Any:
    """(windows, 1, window^2, window^2): -100 between places that the shift has brought together."""
    regions = like.new_zeros((1, height, width, 1))
    count = 0
    for rows in _spans(height, window, shifts[0]):
        for columns in _spans(width, window, shifts[1]):
            regions[:, rows, columns] = count
            count += 1
    labels = _windows(regions, window).squeeze(-1)
    apart = labels.unsqueeze(1) != labels.unsqueeze(2)
    return (apart.to(like.dtype) * -100.0).unsqueeze(1)


def _spans(size: int, window: int, shift: int) -> list[slice]:
    """The stretches of a dimension that lie together before a shift."""
    if not shift:
        return [slice(0, size)]
    return [slice(0, size - window), slice(size - window, size - shift), slice(size - shift, size)]


class _Attention(nn.Module):
    """Attention within windows; those of every second block are shifted."""

    def __init__(self, channels: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.register_buffer("relative_position_index", _offsets(window))

    def _parts(self, x: Any) -> Any:
        """Query, key and value, each (windows, heads, window^2, features of a head)."""
        windows, length, channels = x.shape
        return self._mapped(x).view(windows, length, 3, self.heads, channels // self.heads).unbind(2)

    def _mapped(self, x: Any) -> Any:
        return self.qkv(x)

    def _distances(self, table: Any) -> Any:
        """(1, heads, window^2, window^2): what the distance of two places adds to their score."""
        length = self.window * self.window
        bias = table[self.relative_position_index].view(length, length, -1)
        return bias.permute(2, 0, 1).unsqueeze(0)

    def _scores(self, query: Any, key: Any) -> Any:
        """How well each place of a window meets each other one; a kind of attention defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no _scores")

    def forward(self, x: Any) -> Any:
        window = self.window
        _, height, width, channels = x.shape
        x = nn.functional.pad(x, (0, 0, 0, -width % window, 0, -height % window))
        shape = tuple(x.shape)
        # One window needs no shift: it sees everything.
        shifts = tuple(0 if window >= size else self.shift for size in shape[1:3])
        if any(shifts):
            x = tensor.roll(x, shifts=(-shifts[0], -shifts[1]), dims=(1, 2))
        parts = _windows(x, window)
        query, key, value = (part.transpose(1, 2) for part in self._parts(parts))
        scores = self._scores(query, key)
        if any(shifts):
            mask = _mask(*shape[1:3], window, shifts, x)
            count = mask.shape[0]
            split = scores.view(-1, count, *scores.shape[1:]) + mask.unsqueeze(0)
            scores = split.view(scores.shape)
        attended = nn.functional.softmax(scores, dim=-1) @ value
        attended = self.proj(attended.transpose(1, 2).reshape(-1, window * window, channels))
        x = _image(attended, window, shape)
        if any(shifts):
            x = tensor.roll(x, shifts=shifts, dims=(1, 2))
        return x[:, :height, :width]


class _AttentionV1(_Attention):
    """Scores are scaled products and a learned number for each distance."""

    def __init__(self, channels: int, heads: int, window: int, shift: int) -> None:
        super().__init__(channels, heads, window, shift)
        table = tensor.zeros((2 * window - 1) ** 2, heads)
        self.relative_position_bias_table = nn.Parameter(nn.init.trunc_normal_(table, std=0.02))

    def _scores(self, query: Any, key: Any) -> Any:
        products = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        return products + self._distances(self.relative_position_bias_table)


class _AttentionV2(_Attention):
    """Scores are scaled cosines and a function of the distance that a small network gives."""

    def __init__(self, channels: int, heads: int, window: int, shift: int) -> None:
        super().__init__(channels, heads, window, shift)
        self.register_buffer("relative_coords_table", _log_distances(window))
        self.logit_scale = nn.Parameter(tensor.full((heads, 1, 1), math.log(10.0)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, heads, bias=False)
        )
        nn.init.zeros_(self.qkv.bias.detach()[channels : 2 * channels])

    def _mapped(self, x: Any) -> Any:
        channels = x.shape[-1]
        query, _, value = self.qkv.bias.split(channels)
        # Keys have no shift.
        return nn.functional.linear(x, self.qkv.weight, tensor.cat([query, query.new_zeros(channels), value]))

    def _scores(self, query: Any, key: Any) -> Any:
        normalize = nn.functional.normalize
        cosines = normalize(query, dim=-1) @ normalize(key, dim=-1).transpose(-2, -1)
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.heads)
        scale = self.logit_scale.clamp(max=LARGEST_SCALE).exp()
        return cosines * scale + 16 * self._distances(table).sigmoid()


class _Block(nn.Module):
    """Attention and a perceptron with ways around; norms stand before them, in v2 behind."""

    def __init__(self, channels: int, attention: Any, mlp_ratio: float, drop: float, norm_last: bool) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(channels, eps=1e-5)
        self.attn = attention
        self.stochastic_depth = StochasticDepth(drop)
        self.norm2 = nn.LayerNorm(channels, eps=1e-5)
        self.mlp = MLP(channels, int(channels * mlp_ratio))
        self.norm_last = norm_last

    def forward(self, x: Any) -> Any:
        if self.norm_last:
            x = x + self.stochastic_depth(self.norm1(self.attn(x)))
            return x + self.stochastic_depth(self.norm2(self.mlp(x)))
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class _Merging(nn.Module):
    """Half the image, twice the channels."""

    def __init__(self, channels: int, norm_last: bool) -> None:
        super().__init__()
        self.reduction = nn.Linear(4 * channels, 2 * channels, bias=False)
        self.norm = nn.LayerNorm((2 if norm_last else 4) * channels, eps=1e-5)
        self.norm_last = norm_last

    def forward(self, x: Any) -> Any:
        height, width = x.shape[1:3]
        x = nn.functional.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        quarters = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        x = tensor.cat(quarters, -1)
        return self.norm(self.reduction(x)) if self.norm_last else self.reduction(self.norm(x))


class SwinTransformer(nn.Module):
    """Attention within shifted windows over images that get smaller: (N, 3, H, W) to (N, num_classes).

    Args:
        patch_size: Height and width of the patches.
        embed_dim: Channels of the first stage.
        depths: Blocks of each stage.
        num_heads: Heads of each stage.
        window_size: Height and width of the windows.
        mlp_ratio: Features between the maps of a block, in multiples of its channels.
        stochastic_depth_prob: Share of samples whose last block is dropped; it grows evenly with depth.
        num_classes: Classes.
        version: 1 or 2.

    Source: Liu et al., "Swin Transformer", 2021, and "Swin Transformer V2", 2021; keys of torchvision.

    Example:
        >>> SwinTransformer(4, 24, (1, 1), (3, 6), 4)(taeda.zeros(1, 3, 32, 32)).shape
        Size([1, 1000])
    """

    def __init__(
        self,
        patch_size: int,
        embed_dim: int,
        depths: Sequence[int],
        num_heads: Sequence[int],
        window_size: int,
        mlp_ratio: float = 4.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000,
        version: int = 1,
    ) -> None:
        super().__init__()
        if version not in (1, 2):
            raise ValueError(f"SwinTransformer: version must be 1 or 2, got {version!r}")
        attention = _AttentionV1 if version == 1 else _AttentionV2
        last = version == 2
        patches = nn.Conv2d(3, embed_dim, kernel_size=patch_size, stride=patch_size)
        norm = nn.LayerNorm(embed_dim, eps=1e-5)
        layers: list[Any] = [nn.Sequential(patches, Permute(0, 2, 3, 1), norm)]
        drops = iter(rates(stochastic_depth_prob, sum(depths)))
        channels = embed_dim
        for i, (depth, heads) in enumerate(zip(depths, num_heads, strict=True)):
            if i:
                layers.append(_Merging(channels, last))
                channels *= 2
            stage = nn.Sequential()
            for j in range(depth):
                attending = attention(channels, heads, window_size, window_size // 2 * (j % 2))
                stage.append(_Block(channels, attending, mlp_ratio, next(drops), last))
            layers.append(stage)
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(channels, eps=1e-5)
        self.head = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.features(x)).mean((1, 2)))


def _swin(version: int, width: int, depth: int, drop: float, **options: Any) -> SwinTransformer:
    heads = [(width // 32) << i for i in range(4)]
    settings = {"stochastic_depth_prob": drop, "window_size": 7 if version == 1 else 8, **options}
    return SwinTransformer(4, width, (2, 2, depth, 2), heads, version=version, **settings)


def swin_t(**options: Any) -> SwinTransformer:
    """Swin-T."""
    return _swin(1, 96, 6, 0.2, **options)


def swin_s(**options: Any) -> SwinTransformer:
    """Swin-S."""
    return _swin(1, 96, 18, 0.3, **options)


def swin_b(**options: Any) -> SwinTransformer:
    """Swin-B."""
    return _swin(1, 128, 18, 0.5, **options)


def swin_v2_t(**options: Any) -> SwinTransformer:
    """Swin-T of version 2."""
    return _swin(2, 96, 6, 0.2, **options)


def swin_v2_s(**options: Any) -> SwinTransformer:
    """Swin-S of version 2."""
    return _swin(2, 96, 18, 0.3, **options)


def swin_v2_b(**options: Any) -> SwinTransformer:
    """Swin-B of version 2."""
    return _swin(2, 128, 18, 0.5, **options)
