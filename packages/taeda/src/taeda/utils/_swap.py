"""Exchange of two tensors."""

from __future__ import annotations

from taeda_registry.slots import tensor as _tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def swap_tensors(t1: Any, t2: Any) -> None:
    """Let two tensors exchange what they show, their classes and their attributes; who holds one then sees the other.

    Raises:
        RuntimeError: One is part of a graph.

    Example:
        >>> a, b = taeda.ones(1), taeda.zeros(2)
        >>> taeda.utils.swap_tensors(a, b)
        >>> a
        tensor([0., 0.])
    """
    for t in (t1, t2):
        if not isinstance(t, _tensor.Tensor):
            raise TypeError(f"swap_tensors: expected two Tensors, found {type(t).__name__}")
        if t.grad_fn is not None:
            raise RuntimeError(
                "swap_tensors: a tensor that is the result of a recorded operation cannot be exchanged"
            )
    grads, needs = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    attributes = dict(t1.__dict__), dict(t2.__dict__)
    classes = type(t1), type(t2)
    first, second = t1.detach(), t2.detach()
    with _tensor.no_grad():
        t1.grad = t2.grad = None
        for t in (t1, t2):
            t.requires_grad_(False)
        t1.__class__, t2.__class__ = classes[::-1]
        with _tensor.DisableTorchFunctionSubclass():  # how a class sets its data is not asked
            _tensor.Tensor.data.__set__(t1, second)
            _tensor.Tensor.data.__set__(t2, first)
    for t, values, need, grad in zip((t1, t2), attributes[::-1], needs[::-1], grads[::-1], strict=True):
        t.__dict__.clear()
        t.__dict__.update(values)
        t.requires_grad_(need)
        t.grad = grad
