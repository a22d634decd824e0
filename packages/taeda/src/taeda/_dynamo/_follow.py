"""The graph of what a function did with given tensors, in the form in which compilers of graphs want it.

Sizes and other Python values stand in the graph as they were; every tensor that the function reads is an input of it.
A function that reads numbers out of tensors, or does what a graph cannot say, is not followed, and the reason is told.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda._subclasses import FakeTensorMode
from taeda.fx import _record
from taeda.fx._notes import Notes
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, writes
from taeda.utils import _pytree
from taeda_registry.slots import autograd, nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Followed", "follow"]

#: Questions about a tensor whose answers are no numbers in it; guards keep what they depend on.
_QUESTIONS = tensor.overrides.QUESTIONS | {
    "itemsize", "is_nested", "is_sparse", "ndim", "shape", "dtype", "device", "layout", "requires_grad", "is_leaf",
    "grad_fn", "names", "broadcast_shapes", "__class__", "nbytes", "is_quantized", "_version", "output_nr", "is_cpu",
    "is_cuda", "is_meta", "is_mps", "is_xpu", "is_mkldnn", "is_sparse_csr",
}  # fmt: skip
#: Their results' sizes depend on numbers.
_SIZED_BY_NUMBERS = frozenset({
    "nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "flatnonzero",
    "repeat_interleave",
})  # fmt: skip
_SYMBOLS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "matmul": operator.matmul,
    "neg": operator.neg, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
    "eq": operator.eq, "ne": operator.ne, "__getitem__": operator.getitem, "__setitem__": operator.setitem,
}  # fmt: skip


class Followed(NamedTuple):
    """What a function did.

    Attributes:
        result: Its result.
        module: The graph module, whose inputs are `inputs` and whose result is a tuple of tensors; None where there
            is none.
        failure: Why there is none.
        inputs: For each input the label under which it was given, or the tensor itself.
        rebuild: Makes the function's result of the graph's and of the inputs.
        undo: Takes back what the function wrote in place and what it drew.
    """

    result: Any
    module: GraphModule | None
    failure: str | None
    inputs: list[Any]
    rebuild: Callable[[Any, Any], Any] | None
    undo: Callable[[], None]


class _Following(_record._Recording):
    """Keeps every call; tensors that nobody made become inputs when they are used first."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(None, notes=Notes(nn.Module(), False))
        self.mode = FakeTensorMode()
        self.given = {id(value): label for label, value in reversed(given.items())}
        self.inputs: list[Any] = []
        self.before: list[tuple[Any, int, Any]] = []
        self.paused = False
        self.grad_mode = tensor.is_grad_enabled()
        self._first: Node | None = None

    # --- inputs ---

    def _tensor(self, value: Any) -> Node:
        node = self.nodes.get(id(value))
        if node is not None:
            return node
        label = self.given.get(id(value))
        if label is None and value.grad_fn is not None:
            raise _record._CannotRecordError("a tensor came from a computation that was not seen")
        text = label or f"constant_{len(self.inputs)}"
        name = "".join(c if c.isalnum() else "_" for c in f"L_{text}_")
        with (
            self.graph.inserting_before(self._first) if self._first is not None else contextlib.nullcontext()
        ):
            node = self.graph.placeholder(name, tensor.Tensor)
        self.inputs.append(value if label is None else label)
        self.know(value, node)
        if not (value.requires_grad and self.grad_mode):
            with _untouched(self):
                self.before.append((value, value._version, value.detach().clone()))
        return node

    def know(self, value: Any, node: Node) -> None:
        super().know(value, node)
        if type(value) in (tensor.Tensor, nn.Parameter) and value.layout is tensor.strided:
            with _untouched(self):
                node.meta["example_value"] = self.mode.from_tensor(value)

    def restore(self) -> None:
        """Give the inputs that the function wrote the numbers that they had."""
        with tensor.no_grad():
            for value, version, kept in self.before:
                if value._version != version:
                    value.copy_(kept)

    # --- calls ---

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.paused:
            return func(*args, **(kwargs or {}))
        if self.failure is None and getattr(func, "__name__", "") == "__getitem__" and _masks(args[1]):
            self.failure = "the size of what a mask chooses depends on numbers"
        kwargs = {key: value for key, value in (kwargs or {}).items() if not _is_default(func, key, value)}
        return super().__torch_function__(func, kinds, args, kwargs)

    def _noted(self, func: Any, ready: Any, result: Any) -> Any:
        name = getattr(func, "__name__", "")
        method = tensor.overrides.is_tensor_method_or_property(func)
        if method and name == "__get__":
            name = func.__self__.__name__
        if name in _QUESTIONS:
            return result
        if name in _SIZED_BY_NUMBERS:
            raise _record._CannotRecordError(f"the size of what {name} gives depends on numbers")
        self._follow_grad_mode()
        if name == "__setitem__" or (method and name in _SYMBOLS and _record._has_tensor(result)):
            args, kwargs = self._arguments(ready)
            if not kwargs:
                node = self._call(_SYMBOLS[name], tuple(args))
                self.know(result, node)
                return result
        if method and name in ("detach_", "grad", "register_hook"):
            raise _record._CannotRecordError(f"{name} is of the graph of gradients")
        changes = (method and _writes(name)) or (result is None and writes(func))
        if not _record._has_tensor(result) and not changes and self._nodes_in(ready):
            raise _record._CannotRecordError(f"{name} gives a {type(result).__name__}, which no graph keeps")
        before = len(self.graph.nodes)
        found = super()._noted(func, ready, result)
        self._mark_first(before)
        return found

    def _call(self, function: Any, args: tuple[Any, ...]) -> Node:
        before = len(self.graph.nodes)
        node = self.graph.call_function(function, args)
        self._mark_first(before)
        return node

    def _mark_first(self, before: int) -> None:
        """Note the first node that is no input: inputs are put in front of it."""
        if self._first is None and len(self.graph.nodes) > before:
            self._first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)

    def _nodes_in(self, ready: Any) -> bool:
        if isinstance(ready, _record._CannotRecordError):
            return True
        return any(isinstance(leaf, Node) for leaf in _pytree.tree_leaves(ready))

    def _follow_grad_mode(self) -> None:
        mode = tensor.is_grad_enabled()
        if mode != self.grad_mode:
            self._call(tensor.set_grad_enabled, (mode,))
            self.grad_mode = mode

    def applied(self, function: Any, args: Any) -> Any:
        """A call of a function with a derivative of its own: one node."""
        ready = self._prepared(function, args, {})
        with _untouched(self):
            result = function(*args)
        if self.failure is None and not self.paused:
            try:
                self._noted(function, ready, result)
            except _record._CannotRecordError as error:
                self.failure = str(error)
        return result


@functools.cache
def _defaults(func: Any) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in _record._parameters(func).items()}


def _is_default(func: Any, key: str, value: Any) -> bool:
    """Whether an argument by name is what it would be if it was not given."""
    plain = value is None or type(value) in (bool, int, float, str)
    if not plain or not isinstance(func, types.FunctionType):
        return False
    default = _defaults(func).get(key, ...)
    return type(default) is type(value) and default == value


def _masks(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return any(isinstance(item, tensor.Tensor) and item.dtype == tensor.bool for item in items)


def _writes(name: str) -> bool:
    return name.endswith("_") and (not name.endswith("__") or name == "__set__")


@contextlib.contextmanager
def _untouched(recording: _Following) -> Iterator[None]:
    """A block whose calls are not kept."""
    before, recording.paused = recording.paused, True
    try:
        yield
    finally:
        recording.paused = before


@contextlib.contextmanager
def _whole_functions(recording: _Following) -> Iterator[None]:
    """A block in which functions with derivatives of their own are kept as one call each."""
    base = autograd.Function
    original = vars(base)["apply"]

    def apply(cls: Any, *args: Any) -> Any:
        return recording.applied(types.MethodType(original.__func__, cls), args)

    base.apply = classmethod(apply)
    try:
        yield
    finally:
        base.apply = original


def follow(function: Callable[[], Any], given: dict[str, Any], name: str = "GraphModule") -> Followed:
    """Run a function once and give the graph of what it did.

    Where there is a graph, `undo` of the result takes back what the function wrote in place and what it drew, so that
    the graph can do both.

    Args:
        function: Takes no arguments.
        given: The tensors that it may read, by label.
        name: Name of the graph module's class.
    """
    recording = _Following(given)
    states = tensor.get_rng_state()
    with _whole_functions(recording), recording, recording.notes.watching():  # type: ignore[union-attr]
        result = function()
    module, rebuild = None, None
    if recording.failure is None:
        try:
            module, rebuild = _finished(recording, result, name)
        except _record._CannotRecordError as error:
            recording.failure = str(error)

    def undo() -> None:
        recording.restore()
        tensor.set_rng_state(states)

    return Followed(result, module, recording.failure, recording.inputs, rebuild, undo)


def _finished(recording: _Following, result: Any, name: str) -> tuple[GraphModule, Any]:
    recording._follow_grad_mode()
    leaves, spec = _pytree.tree_flatten(result)
    outputs: list[Node] = []
    places: list[tuple[str, Any]] = []
    for leaf in leaves:
        if not isinstance(leaf, tensor.Tensor):
            places.append(("constant", leaf))
            continue
        node = recording.arg(leaf)
        if node.op == "placeholder":
            places.append(("input", [n for n in recording.graph.nodes if n.op == "placeholder"].index(node)))
        else:
            places.append(("output", len(outputs)))
            outputs.append(node)
    recording.graph.output(tuple(outputs))
    recording.tidy()
    module = GraphModule(nn.Module(), recording.graph, name)

    def rebuild(inputs: Any, found: Any) -> Any:
        found = (found,) if isinstance(found, tensor.Tensor) else found
        sources = {"constant": None, "input": inputs, "output": found}
        return _pytree.tree_unflatten(
            [value if kind == "constant" else sources[kind][value] for kind, value in places], spec
        )

    return module, rebuild
