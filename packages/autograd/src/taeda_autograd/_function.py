"""User-defined differentiable functions."""

from __future__ import annotations

import warnings
from functools import wraps
from types import MethodType

from taeda_autograd import _C
from taeda_autograd._engine import grad
from taeda_tensor_core import Tensor, enable_grad, no_grad, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class FunctionCtx(_C.Context):
    """What forward leaves for backward."""

    _function: type
    _dirty: tuple | None = None
    _constant: tuple | None = None
    _materialize: bool = True
    _arguments: tuple = ()  # shape, dtype and device of tensors, for what has no backward
    _linear: tuple | None = None  # tangents of the arguments and of the outputs, likewise

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for backward, which finds them in ``saved_tensors``.

        Tensors that are neither can be kept too, but second derivatives through them raise RuntimeError. An item that
        is neither a tensor nor None is refused (TypeError) where a graph is recorded.
        """
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where the function has no backward, else nothing: forward mode differentiates it.

        Raises:
            TypeError: An item is neither a tensor nor None.
        """
        for i, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_forward: item {i} is {type(tensor).__name__}, expected a Tensor or None"
                )
        if _is_forward_only(self._function):
            self._to_save = tensors

    @property
    def saved_variables(self) -> tuple:
        """The older name of ``saved_tensors``."""
        warnings.warn("saved_variables is deprecated; use saved_tensors", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that these inputs were modified in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs carry no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not come are given to backward as zeros (the default) or as None."""
        self._materialize = bool(value)


def _is_forward_only(function: type) -> bool:
    """Whether a Function gives `jvp` alone."""
    return (
        getattr(function, "vjp", None) is None
        and function.backward is Function.backward
        and function.jvp is not Function.jvp
    )


def _transposed(ctx: Any, grads: tuple) -> tuple:
    """What a backward would give, by the derivative of `jvp`, which is linear in its tangents.

    `jvp` is called once, as in forward mode: it may delete what it has read from the context.
    """
    if ctx._linear is None:
        tangents = tuple(
            zeros(kind[0], dtype=kind[1], device=kind[2], requires_grad=True) if needed else None
            for kind, needed in zip(ctx._arguments, ctx.needs_input_grad, strict=True)
        )
        with enable_grad():
            outputs = ctx._function.jvp(ctx, *tangents)
        ctx._linear = tangents, outputs if isinstance(outputs, tuple) else (outputs,)
    tangents, outputs = ctx._linear
    pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o is not None and o.requires_grad]
    needed = [t for t in tangents if t is not None]
    found = iter(
        grad([o for o, _ in pairs], needed, [g for _, g in pairs], create_graph=True, allow_unused=True)
    )
    return tuple(None if t is None else next(found) for t in tangents)


class _FunctionMeta(type):
    """Gives every Function its own type of ctx, under whose name its nodes are shown."""

    def __init__(cls, name: str, bases: tuple, namespace: dict) -> None:
        super().__init__(name, bases, namespace)
        cls._context_type = type(f"{name}Backward", (FunctionCtx,), {"_function": cls})
        if "vmap" in namespace and cls.generate_vmap_rule:
            raise RuntimeError(
                f"{name}: it has a method 'vmap' and generate_vmap_rule=True, expected one of both"
            )


class Function(metaclass=_FunctionMeta):
    """Base of user-defined differentiable functions: subclasses give `forward` and `backward` as static methods.

    `forward(ctx, *args)` computes; nothing in it is recorded. `backward(ctx, *grads)` gets one gradient for each
    output and returns one for each argument of forward (None for those that are no tensors or need none). Instead of
    a `ctx` argument of forward a method `setup_context(ctx, inputs, output)` may be given. Use the function by
    :meth:`apply`. A static method `vmap(info, in_dims, *args)` computes for the whole batch of a vmap: `in_dims` says
    where each argument has it (None: nowhere), and the method returns the output and where that has it. Without it
    forward and backward are called inside of the vmap, as for one example; backward also where derivatives are taken
    inside of the vmap (needs `setup_context`, else forward is called so, too).

    Example:
        >>> class Square(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * grad
        >>> Square.apply(taeda.tensor(3.0, requires_grad=True))
        tensor(9., grad_fn=<SquareBackward>)
    """

    setup_context: Callable | None = None
    generate_vmap_rule: bool = False
    _rule_of_vmap: Callable | None = None  # set by the package that has vmap

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated: methods of Functions are static; use the class's own apply",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError: Functions whose instances are called, with a forward that is no static method, are no more."""
        raise RuntimeError(
            f"{type(self).__name__}: Legacy autograd function with non-static forward method is deprecated; use "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be given by subclasses."""
        raise NotImplementedError("Function: the subclass must give a static method 'forward'")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Compute the gradients of the arguments; to be given by subclasses."""
        raise NotImplementedError("Function: the subclass must give a static method 'backward'")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the tangents of the outputs from those of the arguments; needed only without a backward."""
        raise NotImplementedError("Function: the subclass must give a static method 'jvp'")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute for the whole batch of a vmap; without it one example is computed."""
        raise NotImplementedError("Function: the subclass must give a static method 'vmap'")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward and record it when an argument needs a gradient.

        With a `setup_context`, arguments that the call leaves out have forward's defaults there and in backward.
        """
        if cls.setup_context is not None:
            args += _left_out(cls.forward, len(args))
        found = NotImplemented if cls._rule_of_vmap is None else cls._rule_of_vmap(cls, args)
        return _C.apply(cls, *args) if found is NotImplemented else found

    @classmethod
    def _run_forward(cls, ctx: Any, *args: Any) -> Any:
        if cls.forward is Function.forward:
            raise NotImplementedError(
                f"{cls.__name__}: You must implement the forward function for custom autograd.Function, as a static "
                "method"
            )
        if cls.backward is Function.backward and _is_forward_only(cls):
            ctx._arguments = tuple(
                (a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None for a in args
            )
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def _run_backward(cls, ctx: Any, *grads: Any) -> Any:
        vjp = getattr(cls, "vjp", None)
        if vjp is None and cls.backward is Function.backward:
            if _is_forward_only(cls):
                return _transposed(ctx, grads)
            raise NotImplementedError(
                f"{cls.__name__}: You must implement either the backward or vjp method for your custom "
                "autograd.Function, as a static method, to differentiate it"
            )
        if vjp is not None and cls.backward is not Function.backward:
            raise RuntimeError(f"{cls.__name__}: Implementing both 'backward' and 'vjp' is not allowed")
        return cls.backward(ctx, *grads) if vjp is None else vjp(ctx, *grads)


def _left_out(forward: Callable, given: int) -> tuple[Any, ...]:
    """The defaults of the last positional parameters, of which a call gives the first `given`."""
    function = getattr(forward, "__wrapped__", forward)
    defaults = getattr(function, "__defaults__", None)
    bound = isinstance(forward, MethodType)  # a class method, whose first parameter is the class
    missing = function.__code__.co_argcount - bound - given if defaults else 0
    return defaults[-missing:] if 0 < missing <= len(defaults) else ()


def once_differentiable(function: Callable) -> Callable:
    """Mark a backward whose own gradient is not to be computed: asking for it raises RuntimeError."""

    @wraps(function)
    def inside(ctx: Any, *grads: Tensor | None) -> Any:
        with no_grad():
            results = function(ctx, *grads)
        ends = [g for g in grads if isinstance(g, Tensor) and g.requires_grad]
        if not ends:
            return results
        message = (
            f"{type(ctx).__name__}: backward is marked once_differentiable: its result has no derivative"
        )
        single = not isinstance(results, tuple)
        poisoned = tuple(
            _C.poison(r, ends, message) if isinstance(r, Tensor) else r
            for r in ((results,) if single else results)
        )
        return poisoned[0] if single else poisoned

    return inside
