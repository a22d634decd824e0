"""How the loss of a linear map cuts its work into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Options of `F.linear_cross_entropy` that say how its batch is cut, so that not all scores exist at once.

    Args:
        allow_retain_graph: Whether backward may run more than once.
        batch_chunk_size: Samples of a piece.
        chunking_method: How the size is chosen, by default from the shapes.
        acc_policy: How gradients of the pieces are summed: 'accurate', 'balanced', 'compact' or 'auto'.
        acc_dtype: The dtype in which they are.

    Raises:
        ValueError: An unknown policy, or a size that is not positive.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(
                "LinearCrossEntropyOptions: acc_policy must be 'accurate', 'balanced', 'compact' or 'auto', "
                f"got {self.acc_policy!r}"
            )
        if self.batch_chunk_size is not None and self.batch_chunk_size <= 0:
            raise ValueError(
                f"LinearCrossEntropyOptions: batch_chunk_size must be positive, got {self.batch_chunk_size}"
            )
