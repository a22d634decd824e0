"""The names of PyTorch's flex attention, which taeda does not have: it generates kernels from Python functions."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
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


class FlexKernelOptions(TypedDict, total=False):
    """Settings of generated kernels, by name; there are none here that would read them."""


class AuxRequest(NamedTuple):
    """What is asked for beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for."""

    lse: Any = None
    max_scores: Any = None


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
