"""PyTorch's own operator records as calls of both libraries: conversion of arguments, results and their comparison."""

from __future__ import annotations

import sys
import unittest
import warnings
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from op_functions import NoCounterpart, counterpart

import taeda

DTYPES = {getattr(torch, n): getattr(taeda, n) for n in (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")}  # fmt: skip
# NumPy, which values go through, has no more.
MOST_DIMENSIONS = 64
DTYPES |= {torch.float16: taeda.float16, torch.bfloat16: taeda.bfloat16}
DTYPES |= {getattr(torch, n): getattr(taeda, n) for n in ("uint16", "uint32", "uint64")}

# Values are drawn from generators of different kinds, or memory is not initialised.
RANDOM = {
    "bernoulli", "cauchy", "empty", "empty_like", "empty_permuted", "empty_strided", "exponential", "geometric",
    "log_normal", "multinomial", "new_empty", "new_empty_strided", "uniform",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.rrelu", "normal", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "resize_", "resize_as_",
}  # fmt: skip


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


def _all_memory(value: torch.Tensor) -> tuple[tuple[int], tuple[int], int]:
    """Size, stride and offset of a view of all elements in the tensor's memory."""
    return (value.untyped_storage().nbytes() // value.element_size(),), (1,), 0


def _copied(source: torch.Tensor) -> Any:
    """The values as a tensor of taeda; NumPy, which they go through, has no bfloat16."""
    if source.dtype == torch.bfloat16:
        return taeda.from_numpy(source.view(torch.int16).numpy().copy()).view(taeda.bfloat16).clone()
    return taeda.from_numpy(source.numpy().copy())


def convert(value: Any, leaves: list[Any]) -> Any:
    """An argument for taeda; tensors that require grad are added to `leaves`."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in DTYPES or value.layout != torch.strided:
            raise NoCounterpart(value.dtype if value.layout == torch.strided else value.layout)
        if value.device.type == "meta":
            return taeda.empty_strided(
                tuple(value.shape), value.stride(), dtype=DTYPES[value.dtype], device="meta"
            )
        if value.dim() > MOST_DIMENSIONS:
            raise NoCounterpart(f"{value.dim()} dimensions")
        if not value.numel() and not value.requires_grad:
            # Memory of NumPy's cannot grow, as a target may have to.
            return taeda.empty(tuple(value.shape), dtype=DTYPES[value.dtype])
        requires_grad, value = value.requires_grad, value.detach().resolve_conj().resolve_neg()
        whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
        source = value if whole else value.as_strided(*_all_memory(value))
        made = _copied(source)
        if not whole:
            made = made.as_strided(value.shape, value.stride(), value.storage_offset())
        elif tuple(value.stride()) != tuple(made.stride()) and value.dim() > 1 and value.numel():
            order = sorted(range(value.dim()), key=lambda d: -value.stride(d))
            inverse = [order.index(d) for d in range(value.dim())]
            made = made.permute(order).contiguous().permute(inverse)
        if requires_grad:
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
        if value not in DTYPES:
            raise NoCounterpart(value)
        return DTYPES[value]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.layout):
        name = str(value).removeprefix("torch.")
        return getattr(taeda, name, name)
    if isinstance(value, torch.Generator):
        return taeda.Generator().manual_seed(value.initial_seed())
    if callable(value) and not isinstance(value, type):
        return counterpart(value)
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
