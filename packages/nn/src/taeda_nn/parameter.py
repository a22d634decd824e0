"""Parameter and Buffer: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

import copy
from typing import Any

from taeda_nn._bind import Tensor, has_autograd, tensor


def _rebuild(cls: type, data: Tensor, requires_grad: bool) -> Tensor:
    try:
        return Tensor._make_subclass(cls, data, requires_grad)
    except RuntimeError:
        if has_autograd:
            raise
        # Without an autograd provider a tensor may refuse to require gradients; inference needs none.
        return Tensor._make_subclass(cls, data, False)


def _copied_values(value: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of the values; the tensors' own way of deep copies knows which of them share memory."""
    if hasattr(Tensor, "__deepcopy__"):
        return copy.deepcopy(value.data, memo)
    return value.detach().clone()


class Parameter(Tensor):
    """A tensor that is learned: assigning it to a module's attribute registers it.

    Args:
        data: The values, of any shape; shared, not copied. An empty tensor by default.
        requires_grad: Whether gradients are computed for it.

    Example:
        >>> scale = nn.Parameter(torch.ones(3))
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = tensor.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: data must be a Tensor, got {type(data).__name__}")
        return _rebuild(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = memo.get(id(self))
        if copied is None:
            copied = _rebuild(type(self), _copied_values(self, memo), self.requires_grad)
            memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, self.requires_grad)

    def __repr__(self) -> str:
        shown = "Parameter containing:\n" + repr(self.data)
        # As tensors show it, within their own closing bracket.
        return f"{shown[:-1]}, requires_grad=True)" if self.requires_grad and shown.endswith(")") else shown


def _rebuild_buffer(cls: type, data: Tensor, persistent: bool) -> Tensor:
    return cls(data, persistent=persistent)


class Buffer(Tensor):
    """A tensor that belongs to a module's state but is not learned, such as a running mean.

    Args:
        data: The values, of any shape; shared, not copied. An empty tensor by default.
        persistent: Whether it is part of the module's ``state_dict``.

    Example:
        >>> module.mean = nn.Buffer(torch.zeros(3))
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = tensor.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: data must be a Tensor, got {type(data).__name__}")
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        copied = memo.get(id(self))
        if copied is None:
            copied = _rebuild_buffer(type(self), _copied_values(self, memo), self.persistent)
            memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_buffer, (type(self), self.data, self.persistent)

    def __repr__(self) -> str:
        return repr(self.data)
