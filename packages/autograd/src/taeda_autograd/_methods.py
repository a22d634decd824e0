"""Methods that this package gives to tensors and graph nodes."""

from __future__ import annotations

from collections import OrderedDict

from taeda_autograd import _C, _engine
from taeda_autograd._hooks import RemovableHandle
from taeda_tensor_core import _C as _core
from taeda_tensor_core import Tensor, empty, overridable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of this tensor to the ``.grad`` of the leaves it depends on.

    Args:
        gradient: Weight of every element, of this tensor's shape, or a sequence of that one weight; may be left out
            when the tensor has one element.
        retain_graph: Keep what the graph saved; by default the value of `create_graph`.
        create_graph: Record the computation of the gradients.
        inputs: Accumulate into these tensors only.
    """
    if gradient is None and inputs is None:
        keep = create_graph if retain_graph is None else retain_graph
        _C.run_backward((self,), (), bool(keep), bool(create_graph), (), False, True)
        return
    weights = (gradient,) if gradient is None or isinstance(gradient, Tensor) else gradient
    _engine.backward(self, weights, retain_graph, create_graph, None, inputs)


def _expect_callable(hook: object, name: str) -> None:
    if not callable(hook):
        raise TypeError(f"{name}: argument 'hook' must be callable, found {type(hook).__name__}")


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook` with the gradient of this tensor whenever it is computed; a tensor that it returns takes its place.

    Raises:
        RuntimeError: The tensor does not require gradients.

    Example:
        >>> x = taeda.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 2)
        >>> x.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    _expect_callable(hook, "register_hook")
    return RemovableHandle(self, _C.remove_hook, _C.register_hook(self, hook))


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook` with this leaf after a gradient was added to its ``.grad``."""
    _expect_callable(hook, "register_post_accumulate_grad_hook")
    return RemovableHandle(self, _C.remove_hook, _C.register_leaf_hook(self, hook))


def retain_grad(self: Tensor) -> None:
    """Let this tensor, which is no leaf, keep its gradient in ``.grad`` too."""
    _C.retain_grad(self)


def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off its history, in place."""
    return _C.detach_(self)


def register_prehook(self: _C.Node, hook: Callable) -> RemovableHandle:
    """Call `hook` with the tuple of gradients that come into the node; what it returns takes their place."""
    _expect_callable(hook, "register_prehook")
    return RemovableHandle(self, _C.Node._remove_hook, self._register_prehook(hook))


def register_node_hook(self: _C.Node, hook: Callable) -> RemovableHandle:
    """Call `hook` with the gradients that go out of and came into the node; what it returns takes the first's place."""
    _expect_callable(hook, "register_hook")
    return RemovableHandle(self, _C.Node._remove_hook, self._register_hook(hook))


def _grad_dtype(self: Tensor) -> Any:
    """The dtype that gradients of a leaf have: its own unless another was set; None for any that `grad` is given.

    Raises:
        RuntimeError: The tensor is no leaf; or `grad` has another dtype already.

    Example:
        >>> x = taeda.ones(2, dtype=taeda.bfloat16, requires_grad=True)
        >>> x.grad_dtype = taeda.float32
        >>> x.sum().backward()
        >>> x.grad.dtype
        taeda.float32
    """
    like = _C.grad_dtype(self)
    return None if like is None else like.dtype


def _set_grad_dtype(self: Tensor, dtype: Any) -> None:
    _C.set_grad_dtype(self, None if dtype is None else empty(0, dtype=dtype))


def _backward_hooks(self: Tensor) -> OrderedDict[int, Callable[[Tensor], Tensor | None]] | None:
    """The hooks on the tensor's gradient by their numbers, None without any; setting it exchanges them."""
    return OrderedDict(_C.tensor_hooks(self)) or None


def _set_backward_hooks(self: Tensor, hooks: Any) -> None:
    for number, _ in _C.tensor_hooks(self):
        _C.remove_hook(self, number)
    for hook in (hooks or {}).values():
        register_hook(self, hook)


def _output_nr(self: Tensor) -> int:
    from taeda_autograd.graph import get_gradient_edge

    return get_gradient_edge(self).output_nr if self.grad_fn is not None else 0


def _current_graph_task_id() -> int:
    """The number of the backward that this thread is in; -1 for none."""
    return int(_C.current_run()) - 1


def install() -> None:
    """Give tensors their methods of this package."""
    methods = (backward, register_hook, register_post_accumulate_grad_hook, retain_grad, detach_)
    for method in methods:
        setattr(Tensor, method.__name__, method)
    overridable(methods)
    Tensor.retains_grad = property(_C.retains_grad, doc="Whether retain_grad was called.")
    Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype, doc=_grad_dtype.__doc__)
    Tensor._backward_hooks = property(_backward_hooks, _set_backward_hooks, doc=_backward_hooks.__doc__)
    Tensor.output_nr = property(_output_nr, doc="Which result of its operation the tensor is; 0 for leaves.")
    _core._current_graph_task_id = _current_graph_task_id
    _C.Node.register_prehook = register_prehook
    _C.Node.register_hook = register_node_hook
