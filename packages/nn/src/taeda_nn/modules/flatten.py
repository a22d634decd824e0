"""Flatten and Unflatten."""

from __future__ import annotations

from typing import Any

from taeda_nn._bind import Tensor
from taeda_nn.modules.module import Module

__all__ = [
    "Flatten",
    "Unflatten",
]


class Flatten(Module):
    """Merges dimensions ``start_dim`` to ``end_dim`` into one.

    Example:
        >>> nn.Flatten()(torch.randn(32, 1, 5, 5)).shape
        Size([32, 25])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension ``dim`` into several, of sizes ``unflattened_size``.

    Example:
        >>> nn.Unflatten(1, (2, 5, 5))(torch.randn(32, 50)).shape
        Size([32, 2, 5, 5])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim must be an int, got {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)) or not all(
            isinstance(size, int) for size in unflattened_size
        ):
            raise TypeError(f"Unflatten: unflattened_size must be a tuple of ints, got {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
