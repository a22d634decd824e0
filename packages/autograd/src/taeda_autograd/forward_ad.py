"""Derivatives along directions, by tensors that carry a tangent through a program.

A dual tensor is a leaf (or a view, where it has a history) that the level knows with its tangent; the tangent of a
result follows from the graph between them, differentiated twice. For whole functions `taeda.func.jvp` is shorter.

Example:
    >>> with dual_level():
    ...     x = make_dual(taeda.tensor(3.0), taeda.tensor(1.0))
    ...     unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from taeda_autograd._engine import grad
from taeda_autograd.graph import reaches_beyond
from taeda_tensor_core import Tensor, enable_grad, is_grad_enabled, zeros_like

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, which is None for what does not move."""

    primal: Tensor
    tangent: Tensor | None


class _Thread(threading.local):
    """The dual tensors of a thread's level with their tangents; None outside of a level."""

    def __init__(self) -> None:
        self.duals: list[tuple[Tensor, Tensor]] | None = None


_thread = _Thread()


def enter_dual_level() -> int:
    """Begin a level; there is one at a time.

    Raises:
        RuntimeError: One is in force.
    """
    if _thread.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _thread.duals = []
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; its dual tensors are ordinary ones from then on.

    Raises:
        RuntimeError: None is in force, or another number.
    """
    if _thread.duals is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    _thread.duals = None


class dual_level:
    """Context of a level."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the values of `tensor` that moves along `tangent`.

    Raises:
        RuntimeError: No level is in force.
        ValueError: A dtype without derivatives, or a tangent of another shape.
    """
    if _thread.duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise ValueError(
            f"make_dual: argument 'tangent' has shape {tuple(tangent.shape)}, expected {tuple(tensor.shape)}"
        )
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _thread.duals.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor and its tangent; outside of a level nothing moves."""
    if not _thread.duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    for dual, tangent in _thread.duals:
        if dual is tensor:
            return UnpackedDualTensor(dual.detach(), tangent)
    recorded = is_grad_enabled()
    with enable_grad():
        weight = zeros_like(tensor).requires_grad_()
        leaves = [dual for dual, _ in _thread.duals]
        products = grad(tensor, leaves, weight, create_graph=True, retain_graph=True, allow_unused=True)
        moved = [
            (product, tangent)
            for product, (_, tangent) in zip(products, _thread.duals, strict=True)
            if product is not None and product.requires_grad
        ]
        if not moved:
            return UnpackedDualTensor(tensor, None)
        (found,) = grad(
            [p for p, _ in moved], [weight], [t for _, t in moved], create_graph=recorded, retain_graph=True,
            allow_unused=True,
        )  # fmt: skip
    if found is not None and not (recorded and reaches_beyond([found], leaves)):
        found = found.detach()
    return UnpackedDualTensor(tensor, found)


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return -1 if _thread.duals is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
