"""Automatic differentiation in pure Python: a layer over taeda's operators writes down what is called."""

# ruff: noqa: E501 (tables and messages)
from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as tc
from taeda_autograd_tape.node import Node, Saved, State, about, flat, state_of
from taeda_autograd_tape.rules import RULES, zeros
from taeda_tensor_core import (
    Tensor,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    library,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function",
    "Node",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
__taeda_interface__ = {"autograd": "1.0"}
__version__ = "0.1.0"

# Checks of the conformance kit that need one of these are left out.
__taeda_lacks__ = {
    "autograd": {
        "complex": "complex tensors cannot require gradients",
        "recurrent": "no derivatives of the recurrent operators",
    }
}


class Tape(library.Layer):
    """Writes down calls whose arguments require gradients."""

    def __call__(self, op: library.Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        every = (*args, *kwargs.values())
        inputs = [a if isinstance(a, Tensor) else None for a in flat(every)]
        if op.name == "detach" or not any(t is not None and t.requires_grad for t in inputs):
            return op(*args, **kwargs)
        if op.form == "out" or (op.form == "inplace" and op.kind == "view"):
            raise RuntimeError(
                f"{op.name}: taeda-autograd-tape does not record this form, and an argument requires grad; use the one "
                "that gives a new tensor, or no_grad()"
            )
        if op.form == "inplace":
            return self.overwrite(op, every, inputs, lambda: op(*args, **kwargs))
        node = Node(op.name, RULES.get(op.name), inputs)
        node.keep(op, every)
        out = op(*args, **kwargs)
        node.finish(out if isinstance(out, tuple) else (out,))
        return out

    def overwrite(self, op: library.Operator, args: tuple, inputs: list, call: Callable[[], Any]) -> Any:
        """An operation that writes into its first argument, which becomes its result."""
        target, name = args[0], op.name
        if target._is_view():
            raise RuntimeError(
                f"{name}: taeda-autograd-tape records no operation that writes into a view ({about(target)}); write into the "
                "whole tensor, or use no_grad()"
            )
        former = state_of(target)
        if target.requires_grad and former.node is None:
            raise RuntimeError(
                f"{name}: the tensor ({about(target)}) is a leaf that requires grad: it cannot be used in an in-place "
                "operation while gradients are recorded; use no_grad() or clone() it first"
            )
        rule = RULES.get(name) or RULES.get(
            name.replace("_.", ".") if "_." in name else name.removesuffix("_")
        )
        node = Node(name, rule, inputs)
        node.keep(op, args)
        out = call()
        node.finish((target,))
        if former.node is not None and former.node.retained.pop(former.index, None) is not None:
            _retain_grad(target)
        return out


def fitted(name: str, g: Tensor, shape: tuple, dtype: Any) -> Tensor:
    """A gradient summed over what was broadcast, in the input's dtype."""
    given = tuple(g.shape)
    if given != shape:
        extra = max(g.dim() - len(shape), 0)
        g = g.sum(list(range(extra)), keepdim=False) if extra else g
        wide = [d for d, n in enumerate(shape) if d < g.dim() and n == 1 and g.shape[d] != 1]
        g = g.sum(wide, keepdim=True) if wide else g
    if tuple(g.shape) != shape:
        raise RuntimeError(
            f"{name}: its derivative gave a gradient of shape {given} for an argument of shape {shape}"
        )
    return g.to(dtype)


class Pass:
    """One reading of the tape from its end. Nodes have rising numbers, so the highest waiting one has all its gradients."""

    def __init__(self, keep: bool, sink: Callable[[tuple, State | None, Tensor], None]) -> None:
        self.keep, self.sink = keep, sink
        self.nodes: dict[int, tuple[Node, list]] = {}
        self.leaves: dict[int, list] = {}
        self.queue: list[int] = []

    def give(self, state: State, g: Tensor) -> None:
        """Adds to the gradient of one value."""
        if state.node is None:
            slots, at = self.leaves.setdefault(id(state), [state, None]), 1
        else:
            number = state.node.number
            if number not in self.nodes:
                self.nodes[number] = state.node, [None] * len(state.node.results)
                heapq.heappush(self.queue, -number)
            slots, at = self.nodes[number][1], state.index
        slots[at] = g if slots[at] is None else slots[at] + g

    def run(self) -> None:
        while self.queue:
            node, grads = self.nodes.pop(-heapq.heappop(self.queue))
            for i, g in enumerate(grads):
                if g is not None:
                    grads[i] = hooked(node.hooks.get(i, {}), g)
                    self.sink((id(node), i), node.retained.get(i), grads[i])
            if grads[0] is None and len(grads) > 1:
                grads[0] = zeros(node.results[0])
            for entry, g in zip(node.inputs, node.apply(tuple(grads)), strict=False):
                if entry is not None and g is not None:
                    state, shape, dtype = entry
                    self.give(state, fitted(node.name, g, shape, dtype))
            if not self.keep:
                node.free()
        # Leaves come last: an error on the way has changed no `.grad`.
        for state, g in self.leaves.values():
            self.sink(state.key, state, hooked(state.hooks, g))


def hooked(hooks: dict[int, Callable], g: Tensor) -> Tensor:
    """A gradient after the hooks of its tensor."""
    for hook in tuple(hooks.values()):
        found = hook(g)
        if found is None:
            continue
        if not isinstance(found, Tensor):
            raise TypeError(f"tensor hook: result: expected a Tensor or None, found {type(found).__name__}")
        if found.shape != g.shape:
            raise RuntimeError(
                f"tensor hook: result: expected shape {tuple(g.shape)}, found {tuple(found.shape)}"
            )
        g = found
    return g


def run(roots: list, retain_graph: bool | None, create_graph: bool, sink: Callable) -> None:
    reading = Pass(create_graph if retain_graph is None else retain_graph, sink)
    with set_grad_enabled(create_graph):
        for state, g in roots:
            reading.give(state, g)
        reading.run()


def start(tensors: Any, gradients: Any, name: str) -> list[tuple[State, Tensor]]:
    tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    gradients = (gradients,) if gradients is None or isinstance(gradients, Tensor) else tuple(gradients)
    gradients = gradients * len(tensors) if len(gradients) == 1 and gradients[0] is None else gradients
    roots = []
    for t, g in zip(tensors, gradients, strict=True):
        if not t.requires_grad:
            raise RuntimeError(
                f"{name}: the tensor does not require grad, so that nothing can be differentiated"
            )
        if g is None and t.numel() != 1:
            raise RuntimeError(
                f"{name}: a gradient must be given for a tensor of shape {tuple(t.shape)}; only one element needs none"
            )
        if g is not None and tuple(g.shape) != tuple(t.shape):
            raise RuntimeError(f"{name}: the gradient has shape {tuple(g.shape)}, expected {tuple(t.shape)}")
        roots.append((state_of(t), tc.ones_like(t).detach() if g is None else g))
    return roots


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves they depend on."""
    given = () if inputs is None else (inputs,) if isinstance(inputs, Tensor) else inputs
    chosen = {state.key: state for state in map(state_of, given)}

    def sink(key: tuple, state: State | None, g: Tensor) -> None:
        state = state if inputs is None else chosen.get(key)
        if state is not None:
            g = g if create_graph else g.detach()
            state.grad = g if state.grad is None else state.grad + g

    run(start(tensors, grad_tensors, "backward"), retain_graph, create_graph, sink)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple:
    """Gradients of `outputs` with respect to `inputs`, as new tensors."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found: dict[tuple, Tensor] = {}
    wanted = [state_of(t).key for t in inputs]

    def sink(key: tuple, state: State | None, g: Tensor) -> None:
        if key in wanted:
            found[key] = g

    run(start(outputs, grad_outputs, "grad"), retain_graph, create_graph, sink)
    if not allow_unused and any(key not in found for key in wanted):
        raise RuntimeError("grad: an input was not used by the outputs; allow_unused=True gives None for it")
    return tuple(found.get(key) for key in wanted)


class Context:
    """What a Function's forward leaves for its backward."""

    saved_tensors: tuple = ()
    needs_input_grad: tuple = ()

    def save_for_backward(self, *tensors: Tensor) -> None:
        self.saved_tensors = tensors


class Function:
    """Base of functions with their own derivative: static `forward(ctx, *args)` and `backward(ctx, *grads)`."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        ctx = Context()
        inputs = [a if isinstance(a, Tensor) else None for a in args]
        ctx.needs_input_grad = tuple(t is not None and t.requires_grad for t in inputs)
        with no_grad():
            out = cls.forward(ctx, *args)
        if not (is_grad_enabled() and any(ctx.needs_input_grad)):
            return out
        results = [out] if isinstance(out, Tensor) else list(out)

        def rule(grads: tuple, _out: Any, saved: list) -> tuple:
            ctx.saved_tensors = tuple(saved)
            given = (zeros(like) if g is None else g for g, like in zip(grads, node.results, strict=True))
            try:
                found = cls.backward(ctx, *given)
            finally:
                ctx.saved_tensors = ()
            found = found if isinstance(found, tuple) else (found,)
            if len(found) < len(args) or any(g is not None for g in found[len(args) :]):
                raise RuntimeError(
                    f"{cls.__name__}: backward returned {len(found)} gradients, expected one for each of {len(args)} arguments"
                )
            return found

        node = Node(cls.__name__, rule, inputs)
        node.kept = [None if t is None else saved(node.name, t, results) for t in ctx.saved_tensors]
        ctx.saved_tensors = ()
        results = [r.detach() if any(r is t for t in inputs) else r for r in results]
        node.finish(results)
        return results[0] if isinstance(out, Tensor) else tuple(results)


def saved(owner: str, tensor: Tensor, results: list) -> Saved:
    """What a Function saves: a result by its place, anything else with where it came from."""
    at = next((i for i, r in enumerate(results) if r is tensor), None)
    if at is not None and not tensor.requires_grad:
        return Saved(owner, tensor, index=at)
    return Saved(owner, tensor, state_of(tensor) if tensor.requires_grad else None)


class Provider:
    """What the core asks."""

    @staticmethod
    def set_requires_grad(tensor: Tensor, value: bool) -> None:
        state = library.attached_state(tensor)
        if state is not None and state.node is not None:
            if not value:
                raise RuntimeError(
                    f"requires_grad_: the tensor is the result of {state.node.name} and no leaf; use detach()"
                )
            return
        if value and not tensor.dtype.is_floating_point:
            raise RuntimeError(
                f"requires_grad_: with taeda-autograd-tape only floating-point tensors can require gradients, found {tensor.dtype}"
            )
        library.mark_tracked(tensor, value)

    @staticmethod
    def grad(tensor: Tensor) -> Tensor | None:
        state = library.attached_state(tensor)
        return None if state is None else state.grad

    @staticmethod
    def set_grad(tensor: Tensor, value: Tensor | None) -> None:
        state_of(tensor).grad = value

    @staticmethod
    def is_leaf(tensor: Tensor) -> bool:
        state = library.attached_state(tensor)
        return state is None or state.node is None

    @staticmethod
    def grad_fn(tensor: Tensor) -> Node | None:
        state = library.attached_state(tensor)
        return None if state is None else state.node


def _tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this tensor to the `.grad` of the leaves it depends on."""
    backward(self, gradient, retain_graph, create_graph, inputs)


def _retain_grad(self: Tensor) -> None:
    """Keep the gradient of this result in `.grad` too."""
    state = state_of(self)
    if state.node is not None:
        state.node.retained[state.index] = state


class Handle:
    """A hook that can be removed again."""

    def __init__(self, hooks: dict[int, Callable], hook: Callable) -> None:
        self._hooks, self._number = hooks, next(_handles)
        hooks[self._number] = hook

    def remove(self) -> None:
        self._hooks.pop(self._number, None)


def _register_hook(self: Tensor, hook: Callable) -> Handle:
    """Call `hook(grad)` in each backward; a tensor that it gives takes the gradient's place."""
    if not self.requires_grad:
        raise RuntimeError(f"register_hook: the tensor ({about(self)}) does not require gradients")
    state = state_of(self)
    return Handle(state.hooks if state.node is None else state.node.hooks.setdefault(state.index, {}), hook)


_handles = itertools.count()
library.install_autograd(Provider)
Tensor.backward, Tensor.retain_grad, Tensor.register_hook = _tensor_backward, _retain_grad, _register_hook
tape = Tape("taeda-autograd-tape", "autograd", [o for o in library.operators() if o.kind != "composite"])
