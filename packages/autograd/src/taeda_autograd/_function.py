"""User-defined differentiable functions."""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from functools import wraps
from types import MethodType

from taeda_autograd import _C
from taeda_autograd._engine import grad
from taeda_tensor_core import Tensor, enable_grad, is_grad_enabled, no_grad, set_grad_enabled, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class FunctionCtx(_C.Context):
    """What forward leaves for backward."""

    _function: type
    _dirty: tuple | None = None
    _constant: tuple | None = None
    _materialize: bool = True
    _arguments: tuple = ()  # shape, dtype and device of tensors, for what has a jvp

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for backward, which finds them in ``saved_tensors``.

        Tensors that are neither can be kept too, but second derivatives through them raise RuntimeError. An item that
        is neither a tensor nor None is refused (TypeError) where a graph is recorded.
        """
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which finds them in ``saved_tensors``; nothing where the function has none.

        Raises:
            TypeError: An item is neither a tensor nor None.
        """
        for i, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_forward: item {i} is {type(tensor).__name__}, expected a Tensor or None"
                )

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


class _MovingCtx(FunctionCtx):
    """What forward leaves for backward and for `jvp`, which may be called several times, and each finds it anew."""

    _in_jvp: bool = False
    _for_forward: int | None = None  # so many tensors, each an attribute: the node keeps what it has to

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        super().save_for_forward(*tensors)
        self._for_forward = len(tensors)
        for i, tensor in enumerate(tensors):
            setattr(self, f"_for_forward_{i}", tensor)

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to save_for_backward; in jvp those given to save_for_forward, if it was called."""
        if not self._in_jvp or self._for_forward is None:
            return super().saved_tensors
        kept = tuple(getattr(self, f"_for_forward_{i}") for i in range(self._for_forward))
        return kept if is_grad_enabled() else tuple(None if t is None else t.detach() for t in kept)

    def __delattr__(self, name: str) -> None:
        if self._in_jvp and name not in vars(self):
            getattr(self, name)  # the node keeps it for the next call
        else:
            super().__delattr__(name)


def _is_forward_only(function: type) -> bool:
    """Whether a Function gives `jvp` alone."""
    return (
        getattr(function, "vjp", None) is None
        and function.backward is Function.backward
        and function.jvp is not Function.jvp
    )


def _transposed(ctx: Any, grads: tuple) -> tuple:
    """What a backward would give, by the derivative of `jvp`, which is linear in its tangents."""
    tangents = tuple(
        zeros(kind[0], dtype=kind[1], device=kind[2], requires_grad=True) if needed else None
        for kind, needed in zip(ctx._arguments, ctx.needs_input_grad, strict=True)
    )
    with enable_grad():
        outputs = ctx._function._move(ctx, tangents)
    pairs = [
        (o, g)
        for o, g in zip(outputs, grads, strict=True)
        if o is not None and g is not None and _C.is_recorded(o)
    ]
    needed = [t for t in tangents if t is not None]
    found = iter(
        grad([o for o, _ in pairs], needed, [g for _, g in pairs], create_graph=True, allow_unused=True)
    )
    return tuple(None if t is None else next(found) for t in tangents)


class _Thread(threading.local):
    """Whether products are computed to be differentiated by their weights, which gives tangents; and whether operators
    are at a level of dual tensors, those in a forward are not."""

    for_tangents: bool = False
    at_level: bool = False


_thread = _Thread()


@contextmanager
def for_tangents() -> Iterator[None]:
    """A block in which graphs are run for products whose derivatives by their weights are tangents.

    The weights are zeros. A Function with a `jvp` is asked for that derivative instead of for its backward.
    """
    before, _thread.for_tangents = _thread.for_tangents, True
    try:
        yield
    finally:
        _thread.for_tangents = before


class _FunctionMeta(type):
    """Gives every Function its own type of ctx, under whose name its nodes are shown."""

    def __init__(cls, name: str, bases: tuple, namespace: dict) -> None:
        super().__init__(name, bases, namespace)
        root = [each for each in cls.__mro__ if isinstance(each, _FunctionMeta)][-1]
        cls._moves = cls.jvp is not root.jvp
        kind = _MovingCtx if cls._moves else FunctionCtx
        cls._context_type = type(f"{name}Backward", (kind,), {"_function": cls})
        if "vmap" in namespace and cls.vmap is not root.vmap and cls.generate_vmap_rule:
            raise RuntimeError(
                f"{name}: it has a method 'vmap' and generate_vmap_rule=True, expected one of both"
            )


class Function(metaclass=_FunctionMeta):
    """Base of user-defined differentiable functions: subclasses give `forward` and `backward` as static methods.

    `forward(ctx, *args)` computes; nothing in it is recorded. `backward(ctx, *grads)` gets one gradient for each
    output and returns one for each argument of forward (None for those that are no tensors or need none). Instead of
    a `ctx` argument of forward a method `setup_context(ctx, inputs, output)` may be given. Use the function by
    :meth:`apply`.

    A static method `jvp(ctx, *tangents)` gives the tangents of the outputs to forward mode, and finds what
    `ctx.save_for_forward` kept in ``ctx.saved_tensors``; without it the backward is differentiated. A static method
    `vmap(info, in_dims, *args)` computes for the whole batch of a vmap: `in_dims` says where each argument has it
    (None: nowhere), and the method returns the output and where that has it. Without it forward and backward are called
    inside of the vmap, as for one example; backward also where derivatives are taken inside of the vmap (needs
    `setup_context`, else forward is called so, too).

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
        """Compute the tangents of the outputs from those of the arguments; without it forward mode uses backward."""
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
        if found is not NotImplemented:
            return found
        return cls._apply_at_level(args) if _thread.at_level else _C.apply(cls, *args)

    @classmethod
    def _apply_at_level(cls, args: tuple) -> Any:
        """`apply` to what may be duals: they move through the Function as a whole, also where gradients are off."""
        recorded = is_grad_enabled() or any(map(_has_history, args))
        with outside_of_level(), set_grad_enabled(recorded):
            return _C.apply(cls, *args)

    @classmethod
    def _run_forward(cls, ctx: Any, *args: Any) -> Any:
        if cls.forward is Function.forward:
            raise NotImplementedError(
                f"{cls.__name__}: You must implement the forward function for custom autograd.Function, as a static "
                "method"
            )
        if cls._moves:
            ctx._arguments = tuple(
                (a.shape, a.dtype, a.device) if isinstance(a, Tensor) else None for a in args
            )
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def _gives_tangents(cls, ctx: Any) -> bool:
        return cls._moves

    @classmethod
    def _move(cls, ctx: Any, tangents: tuple) -> tuple:
        """The tangents of the outputs by `jvp`, which may delete what it has read from the context."""
        before = dict(vars(ctx))
        ctx._in_jvp = True
        try:
            found = cls.jvp(ctx, *tangents)
        finally:
            vars(ctx).clear()
            vars(ctx).update(before)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    @classmethod
    def _run_backward(cls, ctx: Any, *grads: Any) -> Any:
        if _thread.for_tangents and cls._gives_tangents(ctx):
            return _Tangents.apply(ctx, *grads)
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


class _Tangents(Function):
    """The product of weights, which are zeros, with the Jacobian of a Function: its backward is that one's `jvp`."""

    @staticmethod
    def forward(ctx: Any, of: Any, *weights: Any) -> tuple:
        ctx.of, ctx.shapes = of, tuple(None if w is None else w.shape for w in weights)
        ctx.set_materialize_grads(False)
        return tuple(
            zeros(kind[0], dtype=kind[1], device=kind[2]) if needed else None
            for kind, needed in zip(of._arguments, of.needs_input_grad, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> tuple:
        of = ctx.of
        given = tuple(
            zeros(kind[0], dtype=kind[1], device=kind[2])
            if tangent is None and kind is not None and of._materialize
            else tangent
            for kind, tangent in zip(of._arguments, tangents, strict=True)
        )
        found = of._function._move(of, given)
        if len(found) != len(ctx.shapes):
            raise RuntimeError(
                f"{of._function.__name__}.jvp: it gave {len(found)} tangents, expected {len(ctx.shapes)}, one for "
                "each output"
            )
        for i, (tangent, shape) in enumerate(zip(found, ctx.shapes, strict=True)):
            if tangent is not None and shape is not None and tangent.shape != shape:
                raise RuntimeError(
                    f"{of._function.__name__}.jvp: the tangent of output {i} has shape {tuple(tangent.shape)}, "
                    f"expected {tuple(shape)}"
                )
        return None, *(None if shape is None else t for t, shape in zip(found, ctx.shapes, strict=True))


def _has_history(value: Any) -> bool:
    return isinstance(value, Tensor) and _C.has_history(value)


@contextmanager
def outside_of_level() -> Iterator[None]:
    """A block in which dual tensors are ordinary ones."""
    before, _thread.at_level = _thread.at_level, False
    try:
        yield
    finally:
        _thread.at_level = before


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
