"""``autograd.Variable``: the name that tensors had when only some of them could require gradients."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

from taeda_autograd import _C
from taeda_tensor_core import Tensor


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
    _execution_engine = SimpleNamespace(queue_callback=_C.queue_callback)

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
