"""Automatic differentiation in pure Python: a layer over taeda's operators writes down what is called."""

# ruff: noqa: E501 (tables and messages)
from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import taeda_tensor_core as tc
from taeda_autograd_tape.rules import RULES
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

_numbers = itertools.count(1)


class Node:
    """One call on the tape: the tensors that went in, what came out, and how to go back."""

    __slots__ = ("args", "inputs", "name", "number", "results", "rule")

    def __init__(self, name: str, rule: Callable | None, args: tuple, inputs: list) -> None:
        self.name, self.rule, self.args, self.number = name, rule, args, next(_numbers)
        # For each tensor argument: (state of the tensor that it was, shape, dtype), or None when no gradient is wanted.
        self.inputs = [
            None if t is None or not t.requires_grad else (state_of(t), tuple(t.shape), t.dtype)
            for t in inputs
        ]
        self.results: list = []

    def saved_results(self) -> tuple:
        """Results with their place on the tape, made anew so that node and result do not hold each other."""
        out = []
        for i, kept in enumerate(self.results):
            shown = kept.detach() if isinstance(kept, Tensor) else kept
            if isinstance(kept, Tensor) and kept.dtype.is_floating_point:
                place(shown, self, i)
            out.append(shown)
        return tuple(out)

    def apply(self, grads: tuple) -> tuple:
        """Gradients of the tensor arguments."""
        if self.rule is None:
            raise NotImplementedError(f"{self.name}: taeda-autograd-tape has no derivative of this operator")
        return tuple(self.rule(grads, self.saved_results(), *self.args))

    def __repr__(self) -> str:
        return f"<{self.name} on the tape>"


class State:
    """What the tape keeps with a tensor: where it came from, or, for a leaf, its gradient."""

    __slots__ = ("grad", "index", "node", "retained")

    def __init__(self, node: Node | None = None, index: int = 0) -> None:
        self.node, self.index, self.grad, self.retained = node, index, None, False


def state_of(tensor: Tensor) -> State:
    state = library.attached_state(tensor)
    if state is None:
        state = State()
        library.attach_state(tensor, state)
    return state


def place(tensor: Tensor, node: Node, index: int) -> None:
    library.attach_state(tensor, State(node, index))
    library.mark_tracked(tensor)


def tensors_in(args: Sequence) -> list:
    """Tensor arguments in order; lists count item by item, None where a tensor may stand."""
    found: list = []
    for a in args:
        found.extend(a) if isinstance(a, list) and all(isinstance(t, Tensor) for t in a) else found.append(a)
    return [a if isinstance(a, Tensor) else None for a in found]


class Tape(library.Layer):
    """Writes down calls whose arguments require gradients."""

    def __call__(self, op: library.Operator, args: tuple, kwargs: dict[str, Any]) -> Any:
        inputs = tensors_in(args)
        if not any(t is not None and t.requires_grad for t in inputs):
            return op(*args, **kwargs)
        if op.form != "function":
            raise RuntimeError(
                f"{op.name}: taeda-autograd-tape records no operation that writes into a tensor, and an argument requires "
                "grad; use the form that gives a new tensor, or no_grad()"
            )
        out = op(*args, **kwargs)
        if op.name == "detach":
            return out
        results = out if isinstance(out, tuple) else (out,)
        node = Node(op.name, RULES.get(op.name), (*args, *kwargs.values()), inputs)
        node.results = [r.detach() if isinstance(r, Tensor) else r for r in results]
        for i, result in enumerate(results):
            if isinstance(result, Tensor) and (result.dtype.is_floating_point or result.dtype.is_complex):
                place(result, node, i)
        return out


def fitted(g: Tensor, shape: tuple, dtype: Any) -> Tensor:
    """A gradient summed over what was broadcast, in the input's dtype."""
    if tuple(g.shape) != shape:
        extra = g.dim() - len(shape)
        g = g.sum(list(range(extra)), keepdim=False) if extra else g
        wide = [d for d, n in enumerate(shape) if n == 1 and g.shape[d] != 1]
        g = g.sum(wide, keepdim=True) if wide else g
    return g.to(dtype)


def run(roots: list[tuple[State, Tensor]], create_graph: bool, sink: Callable[[State, Tensor], None]) -> None:
    """Reads the tape from the end. Nodes have rising numbers, so the highest waiting one has all its gradients."""
    waiting: dict[int, list] = {}
    nodes: dict[int, Node] = {}
    queue: list[int] = []

    def give(state: State, g: Tensor) -> None:
        sink(state, g)
        if state.node is None:
            return
        number = state.node.number
        if number not in nodes:
            nodes[number], waiting[number] = state.node, [None] * len(state.node.results)
            heapq.heappush(queue, -number)
        held = waiting[number][state.index]
        waiting[number][state.index] = g if held is None else held + g

    with set_grad_enabled(create_graph):
        for state, g in roots:
            give(state, g)
        while queue:
            number = -heapq.heappop(queue)
            node, grads = nodes.pop(number), waiting.pop(number)
            if grads[0] is None and len(grads) > 1:
                grads[0] = tc.zeros_like(node.results[0])
            for entry, g in zip(node.inputs, node.apply(tuple(grads)), strict=False):
                if entry is not None and g is not None:
                    state, shape, dtype = entry
                    give(state, fitted(g, shape, dtype))


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
    chosen = (
        None
        if inputs is None
        else {id(state_of(t)) for t in ((inputs,) if isinstance(inputs, Tensor) else inputs)}
    )

    def sink(state: State, g: Tensor) -> None:
        if (state.node is None or state.retained) if chosen is None else id(state) in chosen:
            g = g if create_graph else g.detach()
            state.grad = g if state.grad is None else state.grad + g

    run(start(tensors, grad_tensors, "backward"), create_graph, sink)


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
    found: dict[int, Tensor] = {}
    states = [state_of(t) for t in inputs]
    wanted = {id(s) for s in states}

    def sink(state: State, g: Tensor) -> None:
        if id(state) in wanted:
            found[id(state)] = g if id(state) not in found else found[id(state)] + g

    run(start(outputs, grad_outputs, "grad"), create_graph, sink)
    if not allow_unused and any(id(s) not in found for s in states):
        raise RuntimeError("grad: an input was not used by the outputs; allow_unused=True gives None for it")
    return tuple(found.get(id(s)) for s in states)


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
        results = [r.detach() if any(r is t for t in inputs) else r for r in results]

        def rule(grads: tuple, saved: tuple, *_: Any) -> tuple:
            given = (tc.zeros_like(s) if g is None else g for g, s in zip(grads, saved, strict=True))
            found = cls.backward(ctx, *given)
            return found if isinstance(found, tuple) else (found,)

        node = Node(cls.__name__, rule, (), inputs)
        node.results = [r.detach() for r in results]
        for i, r in enumerate(results):
            if r.dtype.is_floating_point:
                place(r, node, i)
        return results[0] if isinstance(out, Tensor) else tuple(results)


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
        if value and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            raise RuntimeError(
                f"requires_grad_: only floating-point and complex tensors can require gradients, found {tensor.dtype}"
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
    state_of(self).retained = True


library.install_autograd(Provider)
Tensor.backward, Tensor.retain_grad = _tensor_backward, _retain_grad
tape = Tape("taeda-autograd-tape", "autograd", [o for o in library.operators() if o.kind != "composite"])
