"""What a Python provider of automatic differentiation asks of the core."""

from __future__ import annotations

from typing import Any

from taeda_tensor_core import _C
from taeda_tensor_core._C import Tensor


def install_autograd(provider: Any) -> None:
    """Let a Python object answer what the core asks of automatic differentiation.

    Args:
        provider: Has `set_requires_grad(tensor, value)`, `grad(tensor)`, `set_grad(tensor, grad)`,
            `is_leaf(tensor)`, `grad_fn(tensor)`, and as attributes whatever methods it adds to tensors
            (`backward`, `register_hook` ...).

    Raises:
        RuntimeError: A compiled provider is loaded already.
    """
    _C._install_autograd(provider)


def attach_state(tensor: Tensor, state: Any) -> None:
    """Keep an object with a tensor, for the installed Python autograd provider; None takes it off."""
    _C._attach_state(tensor, state)


def attached_state(tensor: Tensor) -> Any:
    """What `attach_state` kept, or None."""
    return _C._attached_state(tensor)


def mark_tracked(tensor: Tensor, tracked: bool = True) -> None:
    """Say whether a tensor requires gradients: its calls then pass the layer at position "autograd"."""
    _C._mark_tracked(tensor, tracked)
