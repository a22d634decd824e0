"""Vision Transformer."""

from __future__ import annotations

from functools import partial
from typing import Any

from taeda_models._layers import MLP
from taeda_registry.slots import nn, tensor

__all__ = ["VisionTransformer", "vit_b_16", "vit_b_32", "vit_h_14", "vit_l_16", "vit_l_32", "vit_tiny_16"]


class _Layer(nn.Module):
    """Attention and a perceptron, each behind a norm and with a way around."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        norm = partial(nn.LayerNorm, eps=1e-6)
        self.ln_1 = norm(width)
        self.self_attention = nn.MultiheadAttention(width, heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm(width)
        self.mlp = MLP(width, hidden, dropout)

    def forward(self, x: Any) -> Any:
        inner = self.ln_1(x)
        inner, _ = self.self_attention(inner, inner, inner, need_weights=False)
        x = x + self.dropout(inner)
        return x + self.mlp(self.ln_2(x))


class _Encoder(nn.Module):
    """Positions, layers and a last norm."""

    def __init__(self, length: int, count: int, dropout: float, width: int, *sizes: Any) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(tensor.empty(1, length, width).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential()
        for i in range(count):
            self.layers.add_module(f"encoder_layer_{i}", _Layer(width, *sizes))
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Any) -> Any:
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A Transformer over an image's patches: (N, 3, image_size, image_size) to (N, num_classes).

    Args:
        image_size: Height and width of the images.
        patch_size: Height and width of the patches; it divides ``image_size``.
        num_layers: Layers.
        num_heads: Heads of the attention.
        hidden_dim: Features.
        mlp_dim: Features between the two maps of a layer.
        dropout: Share of features that is dropped.
        attention_dropout: Share of the attention's weights that is dropped.
        num_classes: Classes.

    Raises:
        ValueError: ``patch_size`` does not divide ``image_size``; in the call, images of another size.

    Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020; keys of torchvision.

    Example:
        >>> VisionTransformer(32, 8, 2, 2, 64, 128, num_classes=10)(taeda.zeros(1, 3, 32, 32)).shape
        Size([1, 10])
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"VisionTransformer: patch_size must divide image_size, got {patch_size} and {image_size}"
            )
        self.image_size = image_size
        self.conv_proj = nn.Conv2d(3, hidden_dim, kernel_size=patch_size, stride=patch_size)
        self.class_token = nn.Parameter(tensor.zeros(1, 1, hidden_dim))
        length = (image_size // patch_size) ** 2 + 1
        sizes = hidden_dim, num_heads, mlp_dim, dropout, attention_dropout
        self.encoder = _Encoder(length, num_layers, dropout, *sizes)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(hidden_dim, num_classes))
        init = nn.init
        init.trunc_normal_(self.conv_proj.weight, std=(3 * patch_size * patch_size) ** -0.5)
        init.zeros_(self.conv_proj.bias)
        init.zeros_(self.heads.head.weight)
        init.zeros_(self.heads.head.bias)

    def forward(self, x: Any) -> Any:
        n, _, height, width = x.shape
        if (height, width) != (self.image_size,) * 2:
            raise ValueError(
                f"VisionTransformer: images must be {self.image_size} x {self.image_size}, got {height} x {width}"
            )
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = tensor.cat([self.class_token.expand(n, -1, -1), patches], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _vit(patch: int, layers: int, heads: int, width: int, **options: Any) -> VisionTransformer:
    settings = {"image_size": 224, **options}
    return VisionTransformer(
        patch_size=patch, num_layers=layers, num_heads=heads, hidden_dim=width, mlp_dim=4 * width, **settings
    )


def vit_tiny_16(**options: Any) -> VisionTransformer:
    """ViT-Ti/16 of Touvron et al., "Training data-efficient image transformers", 2020."""
    return _vit(16, 12, 3, 192, **options)


def vit_b_16(**options: Any) -> VisionTransformer:
    """ViT-B/16."""
    return _vit(16, 12, 12, 768, **options)


def vit_b_32(**options: Any) -> VisionTransformer:
    """ViT-B/32."""
    return _vit(32, 12, 12, 768, **options)


def vit_l_16(**options: Any) -> VisionTransformer:
    """ViT-L/16."""
    return _vit(16, 24, 16, 1024, **options)


def vit_l_32(**options: Any) -> VisionTransformer:
    """ViT-L/32."""
    return _vit(32, 24, 16, 1024, **options)


def vit_h_14(**options: Any) -> VisionTransformer:
    """ViT-H/14."""
    return _vit(14, 32, 16, 1280, **options)
