"""What stands on the tape: calls, the tensors they saved, and what a tensor knows of its own place there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taeda_autograd_tape.rules import Rule
from taeda_tensor_core import Tensor, library

_numbers = itertools.count(1)


class State:
    """What the tape keeps with a tensor: where it came from, or, for a leaf, its gradient."""

    __slots__ = ("grad", "hooks", "index", "node", "version")

    def __init__(self, node: Node | None = None, index: int = 0, version: int = 0) -> None:
        self.node, self.index, self.version = node, index, version
        self.grad: Tensor | None = None
        self.hooks: dict[int, Callable] = {}

    @property
    def key(self) -> tuple:
        """The same for all tensors that show one value of the tape."""
        return (id(self.node or self), self.index)


def state_of(tensor: Tensor) -> State:
    """The state of a tensor, made if there is none.

    Raises:
        RuntimeError: the tensor is a view whose memory was written to since; its history tells nothing of that.
    """
    state = library.attached_state(tensor)
    if state is None:
        state = State()
        library.attach_state(tensor, state)
    if state.node is not None and state.version != tensor._version and tensor._is_view():
        raise RuntimeError(
            f"{state.node.name}: its result, a view ({about(tensor)}), was modified by an inplace operation on the "
            "tensor that it shows; taeda-autograd-tape does not follow that: take the view anew"
        )
    return state


def place(tensor: Tensor, node: Node, index: int) -> None:
    """Makes a tensor the result of a call."""
    library.attach_state(tensor, State(node, index, tensor._version))
    library.mark_tracked(tensor)


def about(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"


def flat(args: Sequence) -> list:
    """The arguments in order, lists of tensors (or of what is kept of them) item by item."""
    found: list = []
    for a in args:
        whole = not isinstance(a, list) or not all(isinstance(t, Tensor | Saved | Like) for t in a)
        found.extend([a] if whole else a)
    return found


class Like(NamedTuple):
    """Facts of a tensor whose elements nobody needs."""

    shape: tuple
    dtype: Any
    device: Any

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count


def like(tensor: Tensor) -> Like:
    return Like(tuple(tensor.shape), tensor.dtype, tensor.device)


class Saved:
    """A tensor's memory, its version, and its place on the tape; the tensor itself would hold its own call."""

    __slots__ = ("index", "state", "tensor", "version")

    def __init__(
        self,
        owner: str,
        tensor: Tensor,
        state: State | None = None,
        index: int | None = None,
        copied: bool = False,
    ) -> None:
        if tensor.is_inference():
            raise RuntimeError(
                f"{owner}: a tensor ({about(tensor)}) made under inference_mode cannot be saved for the gradient; "
                "clone() it outside inference_mode first"
            )
        # What is about to be overwritten by the very call is kept as a copy.
        self.tensor = tensor.clone() if copied else tensor.detach()
        self.state, self.index, self.version = state, index, self.tensor._version

    def unpack(self, node: Node, what: str) -> Tensor:
        """The tensor with its place on the tape.

        Raises:
            RuntimeError: it was changed in place since.
        """
        if self.tensor._version != self.version:
            raise RuntimeError(
                f"{node.name}: {what} ({about(self.tensor)}), which is needed for its gradient, was modified by an "
                f"inplace operation: it is at version {self.tensor._version}, expected version {self.version}; use the "
                "form of that operation without '_', or clone() the tensor first"
            )
        shown, state = self.tensor.detach(), self.state
        if self.index is not None and shown.dtype.is_floating_point:
            state = State(node, self.index, self.version)
        if state is not None:
            library.attach_state(shown, state)
            library.mark_tracked(shown)
        return shown


class Results(Sequence):
    """What a rule sees as its call's results: each is checked when it is read."""

    def __init__(self, node: Node, kept: list) -> None:
        self._node, self._kept = node, kept

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, i: Any) -> Any:
        kept = self._kept[i]
        return kept.unpack(self._node, f"result {i}") if isinstance(kept, Saved) else kept


class Node:
    """One call on the tape: where its tensor arguments came from, what it gave, and what is kept for the way back."""

    def __init__(self, name: str, rule: Callable | None, inputs: list) -> None:
        self.name, self.rule, self.number = name, rule, next(_numbers)
        # For each tensor argument: (its state, shape, dtype), or None when no gradient is wanted.
        self.inputs = [
            None if t is None or not t.requires_grad else (state_of(t), tuple(t.shape), t.dtype)
            for t in inputs
        ]
        self.kept: list | None = []
        self.outputs: list = []
        self.results: list[Like] = []
        self.hooks: dict[int, dict[int, Callable]] = {}
        self.retained: dict[int, State] = {}

    def keep(self, op: library.Operator, args: tuple) -> None:
        """Keeps what the rule reads of the arguments, before the call may overwrite them."""
        reads = self.rule.reads(len(args)) if isinstance(self.rule, Rule) else ["skipped"] * len(args)
        states = iter([entry and entry[0] for entry in self.inputs])

        def one(a: Any, read: str, copied: bool) -> Any:
            if isinstance(a, list) and all(isinstance(t, Tensor) for t in a):
                return [one(t, read, False) for t in a]
            state = next(states)
            if not isinstance(a, Tensor):
                return a
            if read == "kept":
                return Saved(self.name, a, state, copied=copied)
            return like(a) if read == "like" else None

        inplace = op.form == "inplace"
        self.kept = [
            one(a, read, inplace and i == 0) for i, (a, read) in enumerate(zip(args, reads, strict=True))
        ]
        # A rule gives gradients of tensor arguments only.
        tensors = [
            a.type in ("Tensor", "Operand")
            for a, v in zip(op.arguments, args, strict=True)
            for _ in flat([v])
        ]
        self.inputs = [entry for entry, tensor in zip(self.inputs, tensors, strict=True) if tensor]

    def finish(self, results: Sequence) -> None:
        """Keeps what the rule reads of the results, and gives these (absent ones are None) their places on the tape."""
        read = self.rule.results if isinstance(self.rule, Rule) else "skipped"
        self.results = [r if r is None else like(r) for r in results]
        self.outputs = list(self.results)
        for i, result in enumerate(results):
            if result is not None and read == "kept":
                self.outputs[i] = Saved(self.name, result, index=i)
            if result is not None and result.dtype.is_floating_point:
                place(result, self, i)

    def free(self) -> None:
        """Forgets what was saved; a call that saved nothing can be gone through again."""
        if any(isinstance(k, Saved) for k in flat([*(self.kept or ()), *self.outputs])):
            self.kept, self.outputs = None, []

    def unpacked(self) -> list:
        """The arguments as the rule reads them.

        Raises:
            RuntimeError: an earlier backward freed them, or one was changed in place.
        """
        if self.kept is None:
            raise RuntimeError(
                f"{self.name}: trying to backward through the graph a second time: what it had saved was freed by an "
                "earlier backward; pass retain_graph=True to that call"
            )

        def one(k: Any, i: int) -> Any:
            if isinstance(k, list):
                return [one(item, i) for item in k]
            return k.unpack(self, f"argument {i}") if isinstance(k, Saved) else k

        return [one(k, i) for i, k in enumerate(self.kept)]

    def apply(self, grads: tuple) -> tuple:
        """Gradients of the tensor arguments."""
        if self.rule is None:
            raise NotImplementedError(f"{self.name}: taeda-autograd-tape has no derivative of this operator")
        return self.rule(grads, Results(self, self.outputs), self.unpacked())

    def __repr__(self) -> str:
        return f"<{self.name} on the tape>"
