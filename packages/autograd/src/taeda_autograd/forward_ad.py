"""Derivatives along directions, by tensors that carry a tangent through a program.

A dual tensor begins a graph (or is a view, where it has a history); the level knows the beginning with its tangent. The
tangent of a result follows from the graph between them, differentiated twice. `no_grad` is for backward alone: what
duals move through is recorded within it too. For whole functions `taeda.func.jvp` is shorter.

Example:
    >>> with dual_level():
    ...     x = make_dual(taeda.tensor(3.0), taeda.tensor(1.0))
    ...     unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple

from taeda_autograd._C import begin_directions, has_history, is_recorded
from taeda_autograd._engine import grad
from taeda_autograd._function import Function, for_tangents, outside_of_level
from taeda_autograd._function import _thread as _calls
from taeda_autograd.graph import get_gradient_edge, reaches_beyond
from taeda_tensor_core import _C, Tensor, enable_grad, is_grad_enabled, is_inference_mode_enabled, zeros_like
from taeda_tensor_core.overrides import TorchFunctionMode

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, which is None for what does not move."""

    primal: Tensor
    tangent: Tensor | None


class _Moving(NamedTuple):
    """Where a dual tensor stands in the graph, what is there before it, and its tangent."""

    edge: Any  # a GradientEdge
    start: Tensor
    tangent: Tensor


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


class _Recording(TorchFunctionMode):
    """A level's mode: records what duals move through where gradients are off, and in gradients that move."""

    def __torch_function__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not _calls.at_level:  # in the forward of a Function, which says itself what moves
            return func(*args, **kwargs)
        if func is grad and _thread.duals:  # what it gives has a tangent, too, which the kept graph tells
            ways = args[3:5]
            args = (*args[:3], *(True for _ in ways), *args[5:])
            kwargs = kwargs | dict.fromkeys(("retain_graph", "create_graph")[len(ways) :], True)
        given = (*args, *kwargs.values())
        if is_grad_enabled() or not any(map(has_history, _tensors(given))):
            return func(*args, **kwargs)
        with enable_grad():
            return func(*args, **kwargs)


class _Thread(threading.local):
    """The dual tensors of a thread's level, None outside of a level; and the level's mode."""

    def __init__(self) -> None:
        self.duals: list[_Moving] | None = None
        self.mode = _Recording()


_thread = _Thread()


class _Dual(Function):
    """Values that begin a graph and can be changed in place, which a leaf cannot."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, values: list[Tensor]) -> Tensor:
        return values[0].detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def enter_dual_level() -> int:
    """Begin a level; there is one at a time.

    Raises:
        RuntimeError: One is in force.
    """
    if _thread.duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _thread.duals = []
    _calls.at_level = True
    try:
        _C._push_function_mode(_thread.mode)
    except BaseException:  # Ctrl-C
        _thread.duals, _calls.at_level = None, False
        if _thread.mode in _C._function_mode_stack():
            _C._pop_function_mode()
        raise
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; its dual tensors are ordinary ones from then on.

    Raises:
        RuntimeError: None is in force, or another number.
    """
    if _thread.duals is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    try:
        _leave()
    except BaseException:  # Ctrl-C in the midst of it
        _leave()
        raise


def _leave() -> None:
    stack = _C._function_mode_stack()
    if _thread.mode in stack:
        above = stack[stack.index(_thread.mode) + 1 :]  # entered in the level and still in force
        for _ in range(len(above) + 1):
            _C._pop_function_mode()
        for mode in above:
            _C._push_function_mode(mode)
    _thread.duals, _calls.at_level = None, False


class dual_level:
    """Context of a level."""

    def __enter__(self) -> int:
        before = _thread.duals
        try:
            return enter_dual_level()
        except BaseException:
            if _thread.duals is not before:  # Ctrl-C when it had begun
                exit_dual_level()
            raise

    def __exit__(self, *exception: object) -> None:
        try:
            exit_dual_level()
        except BaseException:
            if _thread.duals is not None:  # Ctrl-C before its first step
                exit_dual_level()
            raise


def _aside(function: Callable) -> Callable:
    """A function whose own steps the level's mode has nothing to do with, where that is the first one."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        modes = _C._function_mode_stack()
        if not modes or modes[-1] is not _thread.mode:
            return function(*args, **kwargs)
        try:
            _C._pop_function_mode()
            return function(*args, **kwargs)
        finally:
            if _thread.mode not in _C._function_mode_stack():  # Ctrl-C before it was gone
                _C._push_function_mode(_thread.mode)

    return called


@_aside
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the values of `tensor` that moves along `tangent`.

    Raises:
        RuntimeError: No level is in force, or the tangent has another shape.
        ValueError: A dtype without derivatives.
    """
    if _thread.duals is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: argument 'tangent' has shape {tuple(tangent.shape)}, expected {tuple(tensor.shape)}"
        )
    if unpack_dual(tangent).tangent is not None:
        raise RuntimeError("make_dual: argument 'tangent' itself moves along a tangent of this level")
    if is_inference_mode_enabled():  # there is no graph for it to move through
        return tensor.view_as(tensor)
    with enable_grad():
        if is_recorded(tensor):
            dual = start = tensor.view_as(tensor)
        else:
            start = tensor.new_zeros(()).expand(tensor.shape).requires_grad_()
            dual = _Dual.apply(start, [tensor])
            begin_directions(dual)
    _thread.duals.append(_Moving(get_gradient_edge(dual), start, tangent))
    return dual


@_aside
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor and its tangent; outside of a level nothing moves."""
    if not _thread.duals or not is_recorded(tensor):
        return UnpackedDualTensor(tensor, None)
    place = get_gradient_edge(tensor)
    for moving in _thread.duals:
        if moving.edge.node is place.node and moving.edge.output_nr == place.output_nr:
            return UnpackedDualTensor(tensor.detach(), moving.tangent)
    recorded = is_grad_enabled()
    with enable_grad():
        weight = zeros_like(tensor).requires_grad_()
        edges, starts, tangents = zip(*_thread.duals, strict=True)
        products = products_of_weights(tensor, edges, weight)
        moved = [
            (product, tangent)
            for product, tangent in zip(products, tangents, strict=True)
            if product is not None and is_recorded(product)
        ]
        if not moved:
            return UnpackedDualTensor(tensor, None)
        from_outside = [tensor, *(t for _, t in moved if is_recorded(t))]
        with outside_of_level():
            (found,) = grad(
                [p for p, _ in moved], [weight], [t for _, t in moved], retain_graph=True, allow_unused=True,
                create_graph=recorded and reaches_beyond(from_outside, starts),
            )  # fmt: skip
    if found is not None and not (recorded and reaches_beyond([found], starts)):
        found = found.detach()
    kept = recorded and reaches_beyond([tensor], starts)
    return UnpackedDualTensor(tensor if kept else tensor.detach(), found)


def products_of_weights(outputs: Any, inputs: Any, weights: Any) -> tuple:
    """Gradients that are there to be differentiated by `weights`, which are zeros: along tangents of the inputs that
    gives tangents of the outputs (J. Townsend, "A new trick for calculating Jacobian vector products", 2017)."""
    with for_tangents():
        return grad(outputs, inputs, weights, create_graph=True, retain_graph=True, allow_unused=True)


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return -1 if _thread.duals is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
