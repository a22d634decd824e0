"""Looking into the graph, and what it saves: edges, hooks for saved tensors, hooks on several tensors at once."""

from __future__ import annotations

import threading
from functools import partial, wraps
from typing import NamedTuple

from taeda_autograd import _C
from taeda_autograd._hooks import RemovableHandle
from taeda_tensor_core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

Node = _C.Node


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: a node and the number of its output."""

    node: _C.Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of `tensor`; for leaves its AccumulateGrad node.

    ``backward`` and ``grad`` take it in the tensor's place.

    Raises:
        RuntimeError: The tensor needs no gradient.

    Example:
        >>> x = taeda.ones(2, requires_grad=True)
        >>> taeda.autograd.grad(x.exp().sum(), taeda.autograd.graph.get_gradient_edge(x))
        (tensor([2.7182817, 2.7182817]),)
    """
    return GradientEdge(*_C.gradient_edge(tensor))


def is_recorded(tensor: Tensor) -> bool:
    """Whether calls with `tensor` are recorded: it requires grad, or moves along a direction (forward mode)."""
    return _C.is_recorded(tensor)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that the tensors were modified in place by means that it does not see.

    Raises:
        RuntimeError: A tensor was made under inference_mode, which counts no versions.
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C.increment_version(t)


class saved_tensors_hooks:
    """Decide how the operations recorded in a ``with`` block, by this thread, keep the tensors that they save.

    Args:
        pack_hook: Called with each tensor when it is saved; what it returns is kept in its place. It must not modify
            the tensor.
        unpack_hook: Called with that when the gradient needs the tensor; returns a tensor of the same values.

    The innermost block counts. Gradients of any order are as without hooks.

    Raises:
        TypeError: A hook is not callable, or the unpack hook returns no tensor.
        RuntimeError: Hooks are disabled, or the pack hook modified its tensor.

    Example:
        >>> x = taeda.ones(2, requires_grad=True)
        >>> with taeda.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), taeda.tensor):
        ...     y = x * x
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(
                    f"saved_tensors_hooks: argument '{name}' must be callable, found {type(hook).__name__}"
                )
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        try:
            _C.push_saved_hooks(self.pack_hook, self.unpack_hook)
        except Exception:  # they were not taken
            raise
        except BaseException:  # Ctrl-C
            _C.pop_saved_hooks()
            raise

    def __exit__(self, *exception: object) -> None:
        _C.pop_saved_hooks()


class SavedTensor:
    """One tensor that a node keeps for backward: `node._raw_saved_<name>`.

    Example:
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> y = x * x
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda tensor: tensor.numpy(), taeda.tensor)
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, node: _C.Node, name: str, number: int) -> None:
        self._node, self._name, self._number = node, name, number

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Keep what `pack_hook` makes of the tensor; `unpack_hook` makes a tensor of it again in backward.

        Raises:
            TypeError: A hook is not callable.
            RuntimeError: The tensor has hooks, is None or was freed.
        """
        hooks = saved_tensors_hooks(pack_hook, unpack_hook)
        self._node._hook_saved(self._name, self._number, hooks.pack_hook, hooks.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Keep what the block's operations save in the host's memory; it comes back to its device when it is needed.

    Args:
        pin_memory: Keep it in pinned memory, so that copies need not wait, where the tensor's device has such.
        device_type: Taken for compatibility; each tensor's own device counts.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            host = tensor.cpu()
            if host is tensor or host.data_ptr() == tensor.data_ptr():
                return tensor.device, tensor
            return tensor.device, host.pin_memory() if pin_memory else host

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Let every use of :class:`saved_tensors_hooks` in the block, by this thread, raise RuntimeError with this message.

    Raises:
        RuntimeError: Hooks are in use already.
    """

    def __init__(self, error_message: str) -> None:
        if not isinstance(error_message, str):
            raise TypeError(
                "disable_saved_tensors_hooks: argument 'error_message' must be a str, found "
                f"{type(error_message).__name__}"
            )
        self._message = error_message
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        self._before.append(_C.refuse_saved_hooks(self._message))

    def __exit__(self, *exception: object) -> None:
        _C.refuse_saved_hooks(self._before.pop())

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self._message):
                return function(*args, **kwargs)

        return inside


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Let tensors that the block's operations save be modified in place afterwards: a copy of each is kept.

    Example:
        >>> x = taeda.ones(2, requires_grad=True)
        >>> with taeda.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.exp()
        ...     z = y * y
        ...     _ = y.mul_(0)
        ...     z.sum().backward()
        >>> x.grad
        tensor([14.778111, 14.778111])
    """

    _thread = threading.local()

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda copy: copy)

    def __enter__(self) -> None:
        if getattr(self._thread, "entered", False):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self._thread.entered = True
        super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._thread.entered = False
        super().__exit__(*exception)


class _Gathered:
    """What one backward has brought to a set of tensors so far."""

    def __init__(self, count: int) -> None:
        self.grads: list[Tensor | None] = [None] * count
        self.seen = 0


class _MultiHandle(RemovableHandle):
    """Takes the hooks of several tensors off."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once in a backward: with all gradients of `tensors` when the last has come, or with the first.

    With mode "all" and a backward that does not reach all of them it is called at that backward's end.

    Args:
        tensors: Tensors that require gradients.
        fn: With mode "all" it takes a sequence of gradients, None for tensors that the backward does not reach; with
            mode "any" one gradient.
        mode: "all" or "any".

    Returns:
        A handle whose ``remove()`` takes the hook off.

    Raises:
        ValueError: The mode is neither.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: argument 'mode' must be 'all' or 'any', found {mode!r}")
    lock, runs = threading.Lock(), {}

    def enter(index: int, grad: Tensor) -> tuple[int, _Gathered, bool]:
        """The running backward, what it has brought, and whether this is its first."""
        run = _C.current_run()
        with lock:
            fresh = run not in runs
            state = runs.setdefault(run, _Gathered(len(tensors)))
            state.grads[index] = grad
            state.seen += 1
        return run, state, fresh

    def first(index: int, grad: Tensor) -> None:
        run, _, fresh = enter(index, grad)
        if fresh:
            _C.queue_callback(lambda: runs.pop(run))
            fn(grad)

    def gather(index: int, grad: Tensor) -> None:
        run, state, fresh = enter(index, grad)
        if fresh:
            _C.queue_callback(lambda: finish(run))
        if state.seen == len(tensors):
            fn(state.grads)

    def finish(run: int) -> None:
        state = runs.pop(run)
        if state.seen < len(tensors):
            fn(state.grads)

    hook = first if mode == "any" else gather
    hooks = [partial(hook, i) for i in range(len(tensors))]
    return _MultiHandle([t.register_hook(hook) for t, hook in zip(tensors, hooks, strict=True)])


def reaches_beyond(tensors: Iterable[Tensor], leaves: Iterable[Tensor]) -> bool:
    """Whether the graph of tensors ends at any other leaf than these."""
    return _C.reaches_beyond(tuple(tensors), tuple(leaves))
