"""ViT-Ti/16: Touvron et al., "Training data-efficient image transformers", 2020."""

from __future__ import annotations

from typing import Any

from models._images import cross_entropy as loss
from models._images import images
from models._networks import networks

__all__ = ["build", "loss", "make_batch", "make_optimizer"]

BATCH, SIDE, LAYERS, CLASSES = 4, 224, 12, 1000


def build(torch: Any, dropout: float = 0.0) -> Any:
    """Twelve layers of 192 features and three heads over patches of 16 x 16."""
    model = networks(torch).VisionTransformer(SIDE, 16, LAYERS, 3, 192, 768, dropout, num_classes=CLASSES)
    torch.nn.init.normal_(model.heads.head.weight, 0.0, 0.01)
    return model


def make_batch(torch: Any, rng: Any) -> tuple:
    """Random images and classes."""
    return images(torch, rng, BATCH, SIDE, CLASSES)


def make_optimizer(torch: Any, model: Any) -> Any:
    """AdamW in its fused form, PyTorch's fastest."""
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
