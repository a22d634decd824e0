"""Graphs that go through several processes.

Inside of a context a tensor that requires gradients leaves one process and arrives in another: the one keeps the
tensor, the other lets it come out of a step of its own graph, whose backward sends the gradient back. The process that
gets it goes on with the graph behind its tensor. Gradients of leaves add up in the context, not in ``.grad``.

Where several gradients arrive in one process it goes through the graph once for each: sums of parts are the whole.

Source: "Distributed Autograd Design", PyTorch's notes; Baydin et al., "Automatic Differentiation in Machine Learning: a
Survey", 2018, for gradients as sums.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import taeda as torch
from taeda_registry.forks import held_at_fork

if TYPE_CHECKING:
    from taeda.distributed.rpc._agent import Agent
    from taeda.futures import Future

_thread = threading.local()
_lock = held_at_fork(threading.Lock())
_counter = itertools.count(1)
# The numbers of contexts hold the process that made them.
_PLACE = 48


class Context:
    """What one process keeps of a pass through several.

    Attributes:
        number: The same in all processes.
        sent: By their number, tensors that went elsewhere.
        gradients: What has been found, by leaf.
        known: Processes that keep something of the same context.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.sent: dict[int, list[torch.Tensor]] = {}
        self.gradients: dict[torch.Tensor, torch.Tensor] = {}
        self.known: set[int] = set()
        self.lock = threading.Lock()

    def add(self, leaf: torch.Tensor, gradient: torch.Tensor) -> None:
        """Adds to the gradient of a leaf."""
        with self.lock:
            before = self.gradients.get(leaf)
            self.gradients[leaf] = gradient if before is None else before + gradient


_contexts: dict[int, Context] = {}


def make(place: int) -> Context:
    """A new context of the process with that number."""
    return _kept((place << _PLACE) + next(_counter))


def _kept(number: int) -> Context:
    with _lock:
        return _contexts.setdefault(number, Context(number))


def find(number: int) -> Context:
    """The context of that number.

    Raises:
        RuntimeError: There is none in this process.
    """
    found = _contexts.get(number)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {number}")
    return found


def current() -> int:
    """The number of the context in which this thread is; 0 for none."""
    return getattr(_thread, "number", 0)


@contextmanager
def entered(number: int) -> Iterator[None]:
    """This thread is in the context meanwhile."""
    before, _thread.number = current(), number
    try:
        yield
    finally:
        _thread.number = before


def forget(agent: Agent, number: int) -> None:
    """Let a context go, here and in the processes that know it."""
    with _lock:
        found = _contexts.pop(number, None)
    for other in found.known if found is not None else ():
        agent.tell(other, b"forget context", number)


def is_linked(value: Any) -> bool:
    """Whether an object is a tensor whose gradient a message carries on: parameters travel as leaves."""
    return (
        isinstance(value, torch.Tensor) and value.requires_grad and not isinstance(value, torch.nn.Parameter)
    )


def note_sent(agent: Agent, to: int, tensors: list[torch.Tensor]) -> tuple[int, int]:
    """Keep what leaves this process.

    Returns: the number of the context, and that of the tensors in it; 0 for none.
    """
    number = current()
    found = _contexts.get(number) if number else None
    if found is None:
        return 0, 0
    if to != agent.me.id:
        found.known.add(to)
    if not tensors:
        return number, 0
    link = (agent.me.id << _PLACE) + next(_counter)
    with found.lock:
        found.sent[link] = list(tensors)
    return number, link


class _Arrived(torch.autograd.Function):
    """Tensors as they come out of another process."""

    @staticmethod
    def forward(ctx: Any, origin: tuple[int, int, int], anchor: torch.Tensor, *parts: torch.Tensor) -> Any:
        ctx.origin = origin
        ctx.set_materialize_grads(False)
        return tuple(part.detach() for part in parts)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        number, link, source = ctx.origin
        from taeda.distributed.rpc import _agent

        given = [None if gradient is None else gradient.detach() for gradient in gradients]
        _thread.outgoing.append(_agent.agent().ask(source, b"gradients", (number, link, given), 0))
        return (None, None, *(None for _ in gradients))


def note_received(source: int, number: int, link: int, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    """Give what has arrived a graph that leads back."""
    if number:
        _kept(number)
    if not parts:
        return []
    if not link:
        return [part.requires_grad_() for part in parts]
    with torch.enable_grad():
        anchor = torch.empty(0, requires_grad=True)
        anchor._taeda_anchor = True  # no leaf of the program
        return list(_Arrived.apply((number, link, source), anchor, *parts))


def go_back(context: Context, tensors: list[torch.Tensor], gradients: list[torch.Tensor | None]) -> None:
    """Run the graph behind tensors backward, here and wherever it leads; leaves' gradients add up in the context."""
    leaves = _leaves_behind(tensors)
    before, _thread.outgoing = getattr(_thread, "outgoing", None), []
    try:
        with entered(0):
            found = torch.autograd.grad(tensors, leaves, gradients, retain_graph=True, allow_unused=True)
        outgoing: list[Future] = _thread.outgoing
    finally:
        _thread.outgoing = before
    for leaf, gradient in zip(leaves, found, strict=True):
        if gradient is not None and not hasattr(leaf, "_taeda_anchor"):
            context.add(leaf, gradient)
    for future in outgoing:
        future.wait()


def _leaves_behind(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    leaves: dict[int, torch.Tensor] = {id(tensor): tensor for tensor in tensors if tensor.grad_fn is None}
    waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            leaves[id(leaf)] = leaf
        following = {other for other, _ in node.next_functions if other is not None} - seen
        seen |= following
        waiting.extend(following)
    return list(leaves.values())


def _serve_gradients(agent: Agent, source: int, number: int, body: bytes) -> None:
    from taeda.distributed.rpc import _messages

    (context_number, link, gradients), _ = _messages.unpack(agent, source, body)
    context = find(context_number)
    with context.lock:
        tensors = context.sent[link]
    pairs = [(t, g) for t, g in zip(tensors, gradients, strict=True) if g is not None]
    if pairs:
        go_back(context, [t for t, _ in pairs], [g for _, g in pairs])
    agent.answer(source, number, None)


def _serve_forgetting(agent: Agent, source: int, number: int, body: bytes) -> None:
    from taeda.distributed.rpc import _messages

    forget(agent, _messages.unpack(agent, source, body)[0])


#: What the agent does with letters of contexts.
HANDLERS = {b"gradients": _serve_gradients, b"forget context": _serve_forgetting}
