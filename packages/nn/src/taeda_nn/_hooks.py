"""Hooks of modules: storage, removal, and the calls around forward and backward."""

from __future__ import annotations

import warnings
import weakref
from abc import ABCMeta
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from taeda_nn._bind import Tensor, autograd, tensor
from taeda_registry.turns import entries, in_turn

if TYPE_CHECKING:
    from taeda_nn.modules.module import Module

_next_id = 0


class RemovableHandle(metaclass=ABCMeta):  # noqa: B024  other packages register their handles
    """Removes the hook it was returned for, by ``remove()`` or at the end of a ``with`` block.

    Args:
        hooks_dict: The hooks among which this one stands under ``id``.
        extra_dict: A dict, or a list of dicts, with more under this key that goes with the hook.

    Example:
        >>> hooks = collections.OrderedDict()
        >>> handle = RemovableHandle(hooks)
        >>> hooks[handle.id] = print
        >>> handle.remove()
    """

    _more: tuple[weakref.ref, ...] = ()

    @in_turn
    def __init__(self, hooks_dict: OrderedDict[int, Any], *, extra_dict: Any = None) -> None:
        global _next_id
        self.id = _next_id
        _next_id += 1
        self._hooks = weakref.ref(hooks_dict)
        if extra_dict is not None:
            given = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self._more = tuple(weakref.ref(more) for more in given)

    @property
    def hooks_dict_ref(self) -> weakref.ref:
        """Weak reference to the hooks among which this one stands."""
        return self._hooks

    @in_turn
    def remove(self) -> None:
        """Removes the hook; calling it again changes nothing."""
        for reference in (self._hooks, *self._more):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        more = tuple(reference() for reference in self._more)
        return (self._hooks(), self.id, more) if more else (self._hooks(), self.id)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *more = state
        self._hooks = weakref.ref(OrderedDict() if hooks is None else hooks)
        if more:
            self._more = tuple(weakref.ref(OrderedDict() if one is None else one) for one in more[0])
        _number_from(self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.remove()


class HookSet:
    """The hooks of one module (or of all modules), by kind, in calling order and as PyTorch keeps them.

    Beside those of a kind stand the numbers of the ones that are called in another way.
    """

    #: PyTorch's names of the attributes, by name here.
    attributes: ClassVar[dict[str, str]] = {
        "forward_pre": "_forward_pre_hooks",
        "forward_pre_with_kwargs": "_forward_pre_hooks_with_kwargs",
        "forward": "_forward_hooks",
        "forward_with_kwargs": "_forward_hooks_with_kwargs",
        "forward_always_called": "_forward_hooks_always_called",
        "backward_pre": "_backward_pre_hooks",
        "backward": "_backward_hooks",
    }

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.forward_pre_with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always_called: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        # Whether those are called with the gradients of the module's inputs, or of its last operation's.
        self.full_backward = True

    def __bool__(self) -> bool:
        return bool(self.forward or self.forward_pre or self.backward or self.backward_pre)

    def add_forward_pre(
        self, hook: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        return add_hook(self.forward_pre, hook, prepend, {"forward_pre_with_kwargs": with_kwargs}, self)

    def add_forward(
        self,
        hook: Callable[..., Any],
        prepend: bool = False,
        with_kwargs: bool = False,
        always_called: bool = False,
    ) -> RemovableHandle:
        marks = {"forward_with_kwargs": with_kwargs, "forward_always_called": always_called}
        return add_hook(self.forward, hook, prepend, marks, self)

    def add_backward(self, hook: Callable[..., Any], full: bool, prepend: bool = False) -> RemovableHandle:
        """Adds a hook around backward; those that there are must be of the same kind."""
        self.full_backward = full
        return add_hook(self.backward, hook, prepend)

    def is_full_backward(self) -> bool | None:
        """Which kind of hooks around backward there are, if any."""
        return self.full_backward if self.backward else None

    def pickled(self) -> dict[str, Any]:
        """The hooks under PyTorch's names; nothing where there are none."""
        if not self:
            return {}
        found = {name: getattr(self, kind) for kind, name in self.attributes.items()}
        return {**found, "_is_full_backward_hook": self.is_full_backward()}

    @classmethod
    def from_pickled(cls, state: Mapping[str, Any]) -> HookSet | None:
        """The hooks that stand in a module's state under PyTorch's names; None where there are none."""
        hooks = cls()
        for kind, name in cls.attributes.items():
            setattr(hooks, kind, taken_hooks(state.get(name) or ()))
        hooks.full_backward = state.get("_is_full_backward_hook") is not False
        return hooks if hooks else None


def taken_hooks(given: Any) -> OrderedDict[int, Any]:
    """Hooks of a pickled module, which later ones do not take the numbers of: the very dict, which handles know."""
    hooks = given if isinstance(given, OrderedDict) else OrderedDict(given)
    _number_from(1 + max(hooks, default=-1))
    return hooks


def _number_from(number: int) -> None:
    global _next_id
    _next_id = max(_next_id, number)


class HookView(MutableMapping):
    """The hooks of one kind by number, as PyTorch's modules keep them: a live view, through which they can go.

    Args:
        module: A module, or what stands for all of them.
        kind: One of `HookSet.attributes`.
    """

    def __init__(self, module: Any, kind: str) -> None:
        self._module, self._kind = module, kind

    def _entries(self) -> OrderedDict[int, Any]:
        own = self._module._hook_set
        return OrderedDict() if own is None else getattr(own, self._kind)

    def __getitem__(self, number: int) -> Any:
        return self._entries()[number]

    def __setitem__(self, number: int, hook: Any) -> None:
        getattr(self._module._own_hooks(), self._kind)[number] = hook

    def __delitem__(self, number: int) -> None:
        del self._entries()[number]

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._entries()))

    def __len__(self) -> int:
        return len(self._entries())

    def __repr__(self) -> str:
        return repr(OrderedDict(self.items()))


def hook_property(kind: str) -> property:
    """The attribute under which PyTorch's modules keep hooks of one kind; assigning a mapping replaces them."""

    def get(module: Module) -> HookView:
        return HookView(module, kind)

    def replace(module: Module, hooks: Any) -> None:
        given = dict(hooks)
        view = HookView(module, kind)
        view.clear()
        view.update(given)

    return property(get, replace)


#: PyTorch's names of the attributes with hooks around saving and loading, by kind.
STATE_HOOKS = {
    "state_pre": "_state_dict_pre_hooks",
    "state_post": "_state_dict_hooks",
    "load_pre": "_load_state_dict_pre_hooks",
    "load_post": "_load_state_dict_post_hooks",
}


class _WrappedHook:
    """A hook before loading, which is called with the module that it stands in, or without it."""

    def __init__(self, hook: Callable[..., Any], module: Module | None = None) -> None:
        self.hook, self.with_module = hook, module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError(f"load_state_dict: the module of the pre-hook {self.hook!r} is gone")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError(
                    f"unpickling the load_state_dict pre-hook {self.hook!r}: its module was gone"
                )
            self.module = weakref.ref(state["module"])


def state_hook_property(kind: str) -> property:
    """The attribute in which PyTorch's modules keep the hooks around saving or loading of one kind."""

    def get(module: Any) -> OrderedDict[int, Any]:
        if module._state_hooks is None:
            module._state_hooks = {}
        return module._state_hooks.setdefault(kind, OrderedDict())

    def replace(module: Any, hooks: Any) -> None:
        given, kept = OrderedDict(hooks), get(module)
        kept.clear()
        kept.update(given)

    return property(get, replace)


@in_turn
def add_hook(
    hooks: OrderedDict[int, Any],
    hook: Any,
    prepend: bool = False,
    marks: Mapping[str, bool] | None = None,
    beside: HookSet | None = None,
) -> RemovableHandle:
    """Stores ``hook`` in ``hooks``, its number in those ``marks`` of the set that are true; gives its handle."""
    marked = [getattr(beside, name) for name, marks_it in (marks or {}).items() if marks_it]
    handle = RemovableHandle(hooks, extra_dict=marked or None)
    hooks[handle.id] = hook
    for numbers in marked:
        numbers[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def call_hooked(module: Module, own: HookSet, everywhere: HookSet, args: tuple, kwargs: dict) -> Any:
    """Calls ``module.forward`` with the hooks of the module and those registered for all modules."""
    backward, last = backward_hooks(everywhere, own)
    backward_pre = [hook for hooks in (everywhere, own) for _, hook in entries(hooks.backward_pre)]
    around = AroundBackward(module, backward, backward_pre) if backward or backward_pre else None
    called, result = [], None
    try:
        args, kwargs = _run_pre(module, own, everywhere, args, kwargs)
        if around is not None:
            args = around.wrap_inputs(args)
        result = module.forward(*args, **kwargs)
        for hooks, number, hook in _in_order(everywhere, own, "forward"):
            called.append((hooks, number))
            result = _run_post(module, hook, number in hooks.forward_with_kwargs, args, kwargs, result)
    except Exception:
        for hooks, number, hook in _in_order(everywhere, own, "forward"):
            if number in hooks.forward_always_called and (hooks, number) not in called:
                result = _run_after_error(
                    module, hook, number in hooks.forward_with_kwargs, args, kwargs, result
                )
        raise
    if last:
        _hook_last_operation(module, last, args, result)
    return result if around is None else around.wrap_output(result)


def backward_hooks(*sets: HookSet) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
    """The hooks around backward: those with the gradients of modules' inputs, those of the last operation's."""
    full = [hook for hooks in sets if hooks.full_backward for _, hook in entries(hooks.backward)]
    last = [hook for hooks in sets if not hooks.full_backward for _, hook in entries(hooks.backward)]
    return full, last


def _in_order(everywhere: HookSet, own: HookSet, kind: str) -> list[tuple[HookSet, int, Callable[..., Any]]]:
    """The hooks of a kind with their sets and numbers, in calling order."""
    return [
        (hooks, number, hook) for hooks in (everywhere, own) for number, hook in entries(getattr(hooks, kind))
    ]


def _hook_last_operation(module: Module, hooks: list[Callable[..., Any]], args: tuple, result: Any) -> None:
    """Has hooks called with the gradients of the operation that gave the first tensor of a result.

    A FutureWarning says where these are not those of the module's arguments.
    """
    single = isinstance(result, Tensor)
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next(value for value in result.values() if isinstance(value, Tensor))
        else:
            result = result[0]
    if result.grad_fn is not None:
        before = {value.grad_fn for value in args if isinstance(value, Tensor) and value.grad_fn is not None}
        if not single or before != {node for node, _ in result.grad_fn.next_functions}:
            warnings.warn(
                f"register_backward_hook: hooks of {type(module).__name__} are called with the gradients of its last "
                f"operation, {type(result.grad_fn).__name__}, alone; use register_full_backward_hook for those of its "
                "arguments and results",
                FutureWarning,
                stacklevel=4,
            )
        for hook in hooks:
            result.grad_fn.register_hook(partial(hook, module))


def _run_pre(module: Module, own: HookSet, everywhere: HookSet, args: tuple, kwargs: dict) -> tuple:
    for hooks, number, hook in _in_order(everywhere, own, "forward_pre"):
        if number in hooks.forward_pre_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"forward pre-hook of {type(module).__name__}: expected None or a pair (args, kwargs), "
                    f"got {changed!r}"
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _run_post(
    module: Module, hook: Callable[..., Any], with_kwargs: bool, args: tuple, kwargs: dict, result: Any
) -> Any:
    changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    return result if changed is None else changed


def _run_after_error(
    module: Module, hook: Callable[..., Any], with_kwargs: bool, args: tuple, kwargs: dict, result: Any
) -> Any:
    """A hook that is always called: what it raises must not stand in the place of the error that is on its way."""
    try:
        return _run_post(module, hook, with_kwargs, args, kwargs, result)
    except Exception as error:
        warnings.warn(
            f"forward hook of {type(module).__name__} with always_call=True raised {type(error).__name__} after an "
            f"error in forward, which is raised instead: {error}",
            stacklevel=4,
        )
        return result


class AroundBackward:
    """Two identity functions around forward, between which the gradients of one module pass."""

    def __init__(self, module: Module, hooks: list, pre_hooks: list) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_output: tuple | None = None
        self.inputs: int | None = None
        self.tensor_at: list[int] = []

    def wrap_inputs(self, args: tuple) -> tuple:
        """The arguments for forward."""
        self.inputs = len(args)
        at = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        if not tensor.is_grad_enabled() or not any(args[i].requires_grad for i in at):
            return args
        self.tensor_at = at
        passed = _identity(self._at_input, [args[i] for i in at], zeros=True)
        wrapped = list(args)
        for i, value in zip(at, passed, strict=True):
            wrapped[i] = value
        return tuple(wrapped)

    def wrap_output(self, result: Any) -> Any:
        """The results for the caller."""
        values = result if isinstance(result, (tuple, list)) else (result,)
        at = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not any(values[i].requires_grad for i in at):
            return result
        total = len(values)
        given = [values[i] for i in at]
        passed = _identity(lambda grads: self._at_output(grads, at, total), given, zeros=False)
        if not isinstance(result, (tuple, list)):
            return passed[0]
        wrapped = list(result)
        for i, value in zip(at, passed, strict=True):
            wrapped[i] = value
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*wrapped)
        return type(result)(wrapped)

    def _at_output(self, grads: tuple, at: list[int], total: int) -> tuple:
        full: list[Any] = [None] * total
        for i, grad in zip(at, grads, strict=True):
            full[i] = grad
        grad_output = tuple(full)
        for hook in self.pre_hooks:
            changed = hook(self.module, grad_output)
            if changed is not None:
                grad_output = self._checked(changed, total, "Backward pre hook", "grad_output")
        self.grad_output = grad_output
        if not self.tensor_at:
            if self.hooks:
                warnings.warn(
                    f"backward hook of {type(self.module).__name__}: called with the gradients of the output alone, "
                    "since no input requires a gradient",
                    stacklevel=2,
                )
            for hook in self.hooks:
                changed = hook(self.module, (None,) * (self.inputs or 0), grad_output)
                if changed is not None and (
                    not isinstance(changed, tuple) or any(g is not None for g in changed)
                ):
                    raise RuntimeError(
                        f"backward hook of {type(self.module).__name__}: no input requires a gradient, "
                        "so the hook must return None, or None for all gradients"
                    )
        return tuple(grad_output[i] for i in at)

    def _at_input(self, grads: tuple) -> tuple:
        if self.grad_output is None:  # a second derivative that does not pass through the output
            return grads
        total = self.inputs or 0
        full: list[Any] = [None] * total
        for i, grad in zip(self.tensor_at, grads, strict=True):
            full[i] = grad
        grad_input = tuple(full)
        for hook in self.hooks:
            changed = hook(self.module, grad_input, self.grad_output)
            if changed is not None:
                grad_input = self._checked(changed, total, "Backward hook", "grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.tensor_at)

    def _checked(self, changed: Any, expected: int, what: str, named: str) -> tuple:
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != expected:
            raise RuntimeError(
                f"{type(self.module).__name__}: {what} returned an invalid number of {named}, got {len(changed)}, "
                f"but expected {expected}"
            )
        return changed


_identity_function: Any = None


def _identity(on_backward: Callable[[tuple], tuple], values: list[Tensor], zeros: bool) -> tuple:
    """Passes ``values`` on; their gradients pass through ``on_backward``: with ``zeros`` for None where none came."""
    global _identity_function
    if _identity_function is None:

        class Identity(autograd.Function):
            @staticmethod
            def forward(ctx: Any, hook: Callable[[tuple], tuple], zeros: bool, *inputs: Tensor) -> Any:
                ctx.hook = hook
                ctx.set_materialize_grads(zeros)
                outputs = tuple(x.view_as(x) for x in inputs)
                # What needs no gradient has none afterwards either: layers would compute one for the hook alone.
                fixed = (y for x, y in zip(inputs, outputs, strict=True) if not x.requires_grad)
                ctx.mark_non_differentiable(*fixed)
                return outputs

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> Any:
                return (None, None, *ctx.hook(grads))

        _identity_function = Identity
    return _identity_function.apply(on_backward, zeros, *values)
