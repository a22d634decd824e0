"""PyTorch's own operator records as calls of both libraries: conversion of arguments, results and their comparison."""

from __future__ import annotations

import sys
import unittest
import warnings
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch

import taeda

DTYPES = {getattr(torch, n): getattr(taeda, n) for n in (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")}  # fmt: skip
DTYPES |= {torch.float16: taeda.float16, torch.bfloat16: taeda.bfloat16}


def _typed(name: str) -> Callable:
    """The method that converts to a dtype, which has no argument for the layout in memory."""
    return lambda self, memory_format=None: getattr(self, name)()


# PyTorch's records give these arguments in an order or form of their own.
REORDERED = {
    "byte": _typed("byte"),
    "char": _typed("char"),
    "einsum": lambda tensors, equation: taeda.einsum(equation, tensors),
    "native_group_norm": lambda input, weight, bias, n, channels, size, groups, eps: taeda.native_group_norm(
        input, groups, weight, bias, eps
    ),
    "nn.functional.embedding": lambda weight, rows, **options: taeda.nn.functional.embedding(
        rows, weight, **options
    ),
    "slice": lambda self, dim=0, start=None, end=None, step=1: taeda.slice(self, dim, start, end, step),
    "where": lambda self, condition, other: taeda.where(condition, self, other),
    "zero_": lambda self: self.clone().zero_(),
}


def database(module: str, name: str) -> list[Any]:
    """A database of PyTorch's tests. Their helpers import `expecttest`, which the databases do not use."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            stand_in = ModuleType("expecttest")
            stand_in.TestCase = unittest.TestCase
            sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(getattr(import_module(f"torch.testing._internal.{module}"), name))


def op_records() -> list[Any]:
    """PyTorch's operator records."""
    return database("common_methods_invocations", "op_db")


def find(name: str) -> Any:
    """Our function of PyTorch's name, a function that calls the tensor's method, or None."""
    if name in REORDERED:
        return REORDERED[name]
    found: Any = taeda
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not None:
        return found if callable(found) else None
    method = getattr(taeda.Tensor, name, None)
    return (
        None if method is None or not callable(method) else lambda self, *a, **k: getattr(self, name)(*a, **k)
    )


def _all_memory(value: torch.Tensor) -> tuple[tuple[int], tuple[int], int]:
    """Size, stride and offset of a view of all elements in the tensor's memory."""
    return (value.untyped_storage().nbytes() // value.element_size(),), (1,), 0


def convert(value: Any, leaves: list[Any]) -> Any:
    """An argument for taeda; tensors that require grad are added to `leaves`."""
    if isinstance(value, torch.Tensor):
        whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
        source = value if whole else value.as_strided(*_all_memory(value))
        made = taeda.from_numpy(source.detach().resolve_conj().resolve_neg().numpy().copy())
        if not whole:
            made = made.as_strided(value.shape, value.stride(), value.storage_offset())
        elif tuple(value.stride()) != tuple(made.stride()) and value.dim() > 1 and value.numel():
            order = sorted(range(value.dim()), key=lambda d: -value.stride(d))
            inverse = [order.index(d) for d in range(value.dim())]
            made = made.permute(order).contiguous().permute(inverse)
        if value.requires_grad:
            made = made.detach().requires_grad_()
            leaves.append(made)
        return made
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (tuple, list)):
        return type(value)(convert(item, leaves) for item in value)
    if isinstance(value, dict):
        return {key: convert(item, leaves) for key, item in value.items()}
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.memory_format):
        return str(value).removeprefix("torch.")
    return value


def theirs(value: Any, leaves: list[Any]) -> Any:
    """The argument for PyTorch: leaves of its own, in the same order as those of `convert`."""
    if isinstance(value, torch.Tensor):
        if not value.requires_grad:
            return value.detach()
        made = value.detach().requires_grad_()
        leaves.append(made)
        return made
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(theirs(item, leaves) for item in value)
    if isinstance(value, dict):
        return {key: theirs(item, leaves) for key, item in value.items()}
    return value


def tensors(value: Any) -> list[Any]:
    """All tensors of a result, in order."""
    if isinstance(value, (taeda.Tensor, torch.Tensor)):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors(item)]
    return []


def array(t: Any) -> np.ndarray:
    t = t.detach()
    if isinstance(t, torch.Tensor) and t._is_zerotensor():
        t = t.clone()
    return (t.resolve_conj().resolve_neg() if isinstance(t, torch.Tensor) else t).numpy()


def close(found: Any, expected: Any, what: str, rtol: float, atol: float) -> None:
    """AssertionError for another shape, dtype or other values."""
    a, b = array(found), array(expected)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    assert a.dtype == b.dtype, f"{what}: dtype {a.dtype}, expected {b.dtype}"
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True, err_msg=what)


def gradients(result: Any, leaves: list[Any], grad: Any, weigh: Any) -> list[Any] | None:
    """Gradients of the differentiable parts of a result under fixed weights; None when there is none."""
    outputs = [t for t in tensors(result) if t.requires_grad]
    if not outputs or not leaves:
        return None
    weights = [weigh(i, t) for i, t in enumerate(outputs)]
    return list(grad(outputs, leaves, weights, allow_unused=True))


def weights_for(library: Any) -> Any:
    """The same uneven weights for both libraries."""

    def weigh(i: int, t: Any) -> Any:
        count = t.numel()
        values = (np.arange(count) * 7 + 3 * i + 1) % 11 / 11 + 0.25
        values = values.reshape(tuple(t.shape)).astype(array(t).dtype)
        return library.from_numpy(np.array(values))

    return weigh
