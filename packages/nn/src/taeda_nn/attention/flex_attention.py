"""The names of PyTorch's flex attention, which taeda does not have: it generates kernels from Python functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_ABSENT = (
    "flex attention compiles Python functions of scores into kernels, which taeda does not; "
    "use F.scaled_dot_product_attention with attn_mask"
)


#: Rows and columns of a block of a mask.
_DEFAULT_SPARSE_BLOCK_SIZE = 128


@dataclass(frozen=True)
class AuxRequest:
    """Which further results of flex attention are wanted: the log-sum-exp and the largest score of each row."""

    lse: bool = False
    max_scores: bool = False


class BlockMask:
    """Not there: NotImplementedError when one is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"BlockMask: {_ABSENT}")


def flex_attention(*args: Any, **kwargs: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"flex_attention: {_ABSENT}")


def create_block_mask(*args: Any, **kwargs: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"create_block_mask: {_ABSENT}")


def create_mask(*args: Any, **kwargs: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"create_mask: {_ABSENT}")


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"noop_mask: {_ABSENT}")


def and_masks(*mask_mods: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"and_masks: {_ABSENT}")


def or_masks(*mask_mods: Any) -> Any:
    """Not there: NotImplementedError."""
    raise NotImplementedError(f"or_masks: {_ABSENT}")
