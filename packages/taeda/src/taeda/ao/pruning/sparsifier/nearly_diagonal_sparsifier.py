"""Matrices of which the diagonals near the main one stay."""

from __future__ import annotations

from typing import Any

from taeda.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from taeda_registry.slots import nn, tensor

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Masks all but the diagonals next to the main one.

    Args:
        nearliness: How many diagonals stay: an odd number, or one that is not positive for none.

    Raises:
        ValueError: An even number, or one beyond the matrix, when masks are renewed.
    """

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module: nn.Module, tensor_name: str, nearliness: int = 1, **kwargs: Any) -> None:
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = tensor.zeros_like(mask)
        if nearliness <= 0:
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        away = nearliness // 2
        if away >= min(mask.shape):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = tensor.ones_like(mask).tril(away).triu(-away)
