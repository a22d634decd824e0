"""Causal masks that need not be written out."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from taeda_nn import functional as F
from taeda_nn._bind import Tensor, tensor
from taeda_nn.attention import _KERNELS, _cuda_settings

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


def __getattr__(name: str) -> Any:
    if name in (*_KERNELS, "is_flash_attention_available"):
        return getattr(_cuda_settings(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class CausalVariant(IntEnum):
    """Where the triangle of a causal mask that is not square begins.

    UPPER_LEFT: query i attends to keys up to i. LOWER_RIGHT: the last query attends to all keys.
    """

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask known by its kind and sizes, for ``attn_mask`` of `F.scaled_dot_product_attention`.

    Args:
        variant: Where the triangle begins.
        seq_len_q, seq_len_kv: Numbers of queries and keys.

    Example:
        >>> F.scaled_dot_product_attention(q, k, v, causal_lower_right(q.shape[-2], k.shape[-2]))
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        return Tensor._make_subclass(cls, tensor.empty(0), False)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"CausalBias: variant must be a CausalVariant, found {type(variant).__name__}"
            )
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv

    def _shift(self) -> int:
        """The diagonal up to which keys are seen."""
        return 0 if self.variant is CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask itself, (queries, keys): True where a key is seen."""
        seen = tensor.ones((self.seq_len_q, self.seq_len_kv), device=device, dtype=tensor.bool)
        return seen.tril(self._shift())

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        options = {"scale": scale, "enable_gqa": enable_gqa}
        if attn_mask._shift() == 0:
            return F.scaled_dot_product_attention(query, key, value, None, dropout_p, True, **options)
        mask = attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, False, **options)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """A causal mask for ``size`` (queries, keys) in which query i sees keys up to i."""
    queries, keys = _two("causal_upper_left", size)
    return CausalBias(CausalVariant.UPPER_LEFT, queries, keys)


def causal_lower_right(*size: int) -> CausalBias:
    """A causal mask for ``size`` (queries, keys) in which the last query sees all keys."""
    queries, keys = _two("causal_lower_right", size)
    return CausalBias(CausalVariant.LOWER_RIGHT, queries, keys)


def _two(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise RuntimeError(f"{name}: expected the numbers of queries and keys, found {size}")
    return size[0], size[1]
