"""``autograd.Variable``: the name that tensors had when only some of them could require gradients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from taeda_autograd import _C
from taeda_autograd._engine import backward, grad
from taeda_tensor_core import Tensor


def _run_backward(
    tensors: Sequence[Tensor],
    grad_tensors: Sequence[Tensor | None],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] = (),
    allow_unreachable: bool = False,
    accumulate_grad: bool = True,
) -> Any:
    """`backward`, or `grad` where gradients are not to be accumulated, as programs call them that know the engine."""
    if accumulate_grad:
        return backward(tensors, grad_tensors, keep_graph, create_graph, inputs=list(inputs) or None)
    return grad(tensors, inputs, grad_tensors, keep_graph, create_graph, allow_unused=allow_unreachable)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Gives a tensor over the same memory; every Tensor is an instance.

    Args:
        data: A tensor.
        requires_grad: Whether operations on the result are recorded.
        volatile: Of no effect, with a warning: what it was for is `no_grad`.

    Example:
        >>> x = taeda.autograd.Variable(taeda.ones(2), requires_grad=True)
        >>> isinstance(x, taeda.Tensor)
        True
    """

    #: The engine under the name that programs know: ``queue_callback(f)`` calls `f` at the end of the running backward.
    _execution_engine = SimpleNamespace(queue_callback=_C.queue_callback, run_backward=_run_backward)

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:  # type: ignore[misc]
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: argument 'data' must be a Tensor, found {type(data).__name__}")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
        return data.detach().requires_grad_(requires_grad)


VariableMeta = _VariableMeta

__all__ = ["Variable", "VariableMeta"]
