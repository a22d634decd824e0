"""Operators that are private parts of PyTorch's and that libraries name in their dispatch, defined when asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def _alias(self: Any) -> Any:
    return self.view(self.shape)


def _to_copy(self: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> Any:
    return self.to(device=self.device if device is None else device, dtype=dtype or self.dtype, copy=True)


def _pin_memory(self: Any, device: Any = None) -> Any:
    return self.pin_memory(device)


def _unsafe_view(self: Any, size: Any) -> Any:
    return self.reshape(size)


def _sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * (mat1 @ mat2)


def _sparse_mm_reduce_impl(self: Any, other: Any, reduce: str) -> Any:
    raise NotImplementedError("_sparse_mm_reduce_impl is not there: use taeda.sparse.mm")


_DEFINITIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "alias": ("(Tensor(a) self) -> Tensor(a)", _alias),
    "_to_copy": (
        "(Tensor self, *, DType? dtype=None, Device? device=None, bool non_blocking=False) -> Tensor",
        _to_copy,
    ),
    "_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "_unsafe_view": ("(Tensor self, int[] size) -> Tensor", _unsafe_view),
    "_sparse_addmm": (
        "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        _sparse_addmm,
    ),
    "_sparse_mm_reduce_impl": (
        "(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
        _sparse_mm_reduce_impl,
    ),
}


@functools.cache
def _defined(name: str) -> Any:
    """Its registration, which lives as long as the process."""
    from taeda_tensor_core.library._operators import Library

    schema, function = _DEFINITIONS[name]
    return Library("aten", "FRAGMENT").operator(f"aten::{name}{schema}")(function)


def define(name: str) -> bool:
    """Define ``aten::name``; False if it is none of these."""
    if name not in _DEFINITIONS:
        return False
    _defined(name)
    return True
