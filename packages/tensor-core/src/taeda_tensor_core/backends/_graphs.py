"""Graphs of calls, offered to the backend of a device that can run them as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda_tensor_core import _C, _modes
from taeda_tensor_core._C import Tensor
from taeda_tensor_core.library import Operator
from taeda_tensor_core.python_dispatch import TorchDispatchMode


class _NoGraph(Exception):
    """What a function does cannot be said as a graph."""


class _Calls(TorchDispatchMode):
    """Keeps the calls of a run, with tensors without elements in the places of inputs and results."""

    def __init__(self, inputs: tuple[Tensor, ...]) -> None:
        self.kept: list[Tensor] = []  # so that no other tensor gets the identity of one that is gone
        self.places: dict[int, Tensor] = {}
        self.calls: list[tuple[str, tuple, list[Tensor]]] = []
        self.inputs = [self.place(tensor) for tensor in inputs]

    def place(self, tensor: Tensor) -> Tensor:
        """A new stand-in for a tensor."""
        made = _C.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        self.kept.append(tensor)
        self.places[id(tensor)] = made
        return made

    def known(self, value: Any) -> Any:
        """An argument with stand-ins; tensors that are neither inputs nor results are constants."""
        if isinstance(value, Tensor):
            self.kept.append(value)
            return self.places.get(id(value), value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.known(item) for item in value)
        return value

    _asks_for_own_form = True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        operator = func.operator
        if operator.form != "function" or any(a.written for a in operator.arguments):
            raise _NoGraph(f"{operator.name} writes to its arguments")
        if any(each.list for each in operator.results):
            raise _NoGraph(f"{operator.name} gives a list of tensors")
        arguments = tuple(self.known(value) for value in _all(operator, args, kwargs or {}))
        made = func(*args, **(kwargs or {}))
        results = made if isinstance(made, (list, tuple)) else (made,)
        if any(not isinstance(each, Tensor) or id(each) in self.places for each in results):
            raise _NoGraph(f"{operator.name} gives no new tensor")
        self.calls.append((operator.name, arguments, [self.place(each) for each in results]))
        return made


def _all(operator: Operator, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """All arguments of a call in the order of the schema."""
    given = list(args)
    for argument in operator.arguments[len(given) :]:
        given.append(kwargs.get(argument.name, argument.default))
    return given


class CompiledGraph:
    """A function that a backend runs as a whole where it can.

    Attributes:
        reason: Why it runs call by call; empty when the backend has taken the graph.
    """

    def __init__(self, function: Callable, examples: tuple[Tensor, ...]) -> None:
        self._function = function
        self._facts = [_facts(each) for each in examples]
        self._single = False
        self._executable: Any = None
        self.reason = ""
        try:
            self._executable = self._compile(examples)
        except _NoGraph as error:
            self.reason = str(error)

    def _compile(self, examples: tuple[Tensor, ...]) -> Any:
        calls = _Calls(examples)
        with _modes.no_grad(), calls:
            made = self._function(*examples)
        self._single = isinstance(made, Tensor)
        outputs = (made,) if self._single else tuple(made)
        if not all(isinstance(each, Tensor) for each in outputs):
            raise _NoGraph("the function gives what is no tensor")
        kept = [calls.places.get(id(each), each) for each in outputs]
        found = _C._graph_compile(examples[0].device, calls.calls, calls.inputs, kept)
        if not isinstance(found, str):
            return found
        self.reason = f"device '{examples[0].device.type}' takes no such graph" + (
            f": {found}" if found else ""
        )
        return None

    def __call__(self, *tensors: Tensor) -> Any:
        """Run it; tensors of other shapes, dtypes or devices, and calls that record gradients, go call by call."""
        records = _C.is_grad_enabled() and any(each.requires_grad for each in tensors)
        if self._executable is None or records or [_facts(each) for each in tensors] != self._facts:
            return self._function(*tensors)
        made = _C._graph_run(self._executable, tensors)
        return made[0] if self._single else made


def _facts(tensor: Tensor) -> tuple:
    return tuple(tensor.shape), tensor.dtype, tensor.device


def compile_graph(function: Callable, *examples: Tensor) -> CompiledGraph:
    """Offer what a function of tensors does to the backend of their device, as one graph of operator calls.

    The function is run once, without recording gradients; the calls of that run are the graph, and tensors that are
    neither arguments nor results of calls are constants in it. What the function decides by elements is decided once.

    Args:
        function: Takes tensors, gives a tensor or a tuple of tensors, and writes to none that it was given.
        examples: Tensors of the shapes and dtypes for which the graph is compiled, on one device.

    Returns: The function; `reason` says why the backend does not run it as a whole, if so.

    Raises:
        ValueError: There are no examples, or they lie on several devices.

    Example:
        >>> fast = taeda.backends.compile_graph(lambda x: (x * 2).relu().sum(), taeda.ones(3))
        >>> fast.reason
        "device 'cpu' takes no such graph"
        >>> fast(taeda.ones(3))
        tensor(6.)
    """
    if not examples or any(each.device != examples[0].device for each in examples):
        raise ValueError("compile_graph: expected at least one example, all on one device")
    return CompiledGraph(function, examples)
