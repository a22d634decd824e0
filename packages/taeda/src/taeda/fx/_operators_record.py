"""Graphs of the operators that a program called, backward passes included, under PyTorch's names of overloads.

`_record` keeps the public functions of a program and the sizes that it reads; this keeps what is below them, as
dispatch modes are told it: sizes are numbers here.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from taeda.fx._code import _PyTreeCodeGen, _PyTreeInfo
from taeda.fx._record import _names, _parameters
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.utils import _pytree
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["OperatorRecording", "following_branches", "recorded"]


class OperatorRecording(TorchDispatchMode):  # type: ignore[misc]
    """A mode that keeps every operator that is called, and lets it run.

    Args:
        decompositions: Functions that stand for operators, by overload; what they call is kept instead.

    Attributes:
        graph: The graph so far.
        paused: Whether operators run without being kept.
    """

    def __init__(self, decompositions: Mapping[Any, Callable[..., Any]] | None = None) -> None:
        super().__init__()
        self.graph = Graph()
        self.holder = nn.Module()
        self.paused = False
        self._decompositions = dict(decompositions or {})
        self._nodes: dict[int, Node] = {}
        self._by_memory: dict[Any, Node] = {}  # autograd keeps results as other objects over the same memory
        self._kept: list[Any] = []
        self._constants = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(cls.__module__.partition(".")[0].partition("_")[0] not in ("taeda", "torch") for cls in types):
            return NotImplemented  # a class of the program's own: what it calls is kept
        if self.paused:
            return func(*args, **kwargs)
        if (instead := self._decompositions.get(func)) is not None:
            with self:
                result = instead(*args, **kwargs)
            if result is not NotImplemented:
                return result
        given = self._arg(tuple(args)), self._arg(kwargs)
        result = func(*args, **kwargs)
        if _has_tensor(result):
            self.know(result, self._call(func, given))
        elif result is None and given[0]:
            self._call(func, given)
        return result

    def whole(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function that is kept as one call, whatever it calls."""
        given = self._arg(args), self._arg(kwargs)
        with self._pause():
            result = func(*args, **kwargs)
        node = self._call(func, given)
        if _has_tensor(result):
            self.know(result, node)
        return result

    def cond(self, pred: Any, branches: tuple[GraphModule, GraphModule], operands: Any) -> Any:
        """The result of a `cond` between graph modules, which are kept as graphs of operators."""
        given = self._arg(pred), self._arg(tuple(operands))
        with self._pause():
            modules, results = self._branches(branches, operands, ("true", "false"))
            taken = results[0 if bool(pred) else 1]
        node = self.graph.call_function(tensor.cond, (given[0], *modules, given[1]))
        self.know(taken, node)
        return taken

    def while_loop(self, functions: tuple[GraphModule, GraphModule], carried: Any, additional: Any) -> Any:
        """The result of a `while_loop` of graph modules, which are kept as graphs of operators."""
        given = self._arg(tuple(carried)), self._arg(tuple(additional))
        with self._pause():
            modules, _ = self._branches(functions, (*carried, *additional), ("cond", "body"))
            taken = tensor.while_loop(*functions, carried, additional)
        node = self.graph.call_function(tensor.while_loop, (*modules, *given))
        self.know(taken, node)
        return taken

    @contextmanager
    def _pause(self) -> Iterator[None]:
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def _branches(
        self, functions: tuple[GraphModule, GraphModule], operands: Any, kinds: tuple[str, str]
    ) -> tuple[list[Node], list[Any]]:
        """The nodes of two graph modules and their results."""
        number = sum(name.startswith(f"{kinds[0]}_graph_") for name in self.holder._modules)
        done = [
            self._branch(function, operands, f"{kind}_graph_{number}")
            for kind, function in zip(kinds, functions, strict=True)
        ]
        return [node for node, _ in done], [result for _, result in done]

    def _branch(self, branch: GraphModule, operands: Any, path: str) -> tuple[Node, Any]:
        """The node of a branch's graph module, and its result."""
        inner = OperatorRecording(self._decompositions)
        names = [node.name for node in branch.graph.nodes if node.op == "placeholder"]
        for name, value in zip(names, operands, strict=True):
            inner.input(name, value)
        with following_branches(inner):
            result = branch(*operands)
        self.holder.add_module(path, inner.finished(result, path))
        return self.graph.get_attr(path), result

    def _call(self, func: Any, given: tuple[Any, Any]) -> Node:
        name = str(func).split(".")[1]  # without package and overload
        return self.graph.create_node("call_function", func, *given, name=name)

    def input(self, name: str, value: Any) -> Node:
        """A placeholder; a tensor is known by it from here on."""
        node = self.graph.placeholder(name)
        if isinstance(value, tensor.Tensor):
            self.know(value, node)
        return node

    def know(self, value: Any, node: Node) -> None:
        """Note that a node's result is a value, and the tensors in it."""
        node.meta["val"] = value
        if isinstance(value, tensor.Tensor):
            self._nodes[id(value)] = node
            self._by_memory[_place(value)] = node
            self._kept.append(value)
            return
        for index, item in enumerate(value):
            if _has_tensor(item):
                self.know(item, self.graph.call_function(operator.getitem, (node, index)))

    def node_of(self, value: Any) -> Node | None:
        """The node of a tensor."""
        return self._nodes.get(id(value)) or self._by_memory.get(_place(value))

    def hangs_on_inputs(self, value: Any) -> bool:
        """Whether a tensor is an input, computed from one, or drawn: its elements are others in the next call."""
        ahead, seen = [self.node_of(value)], set()
        while ahead:
            node = ahead.pop()
            if node is None or node in seen:
                continue
            if node.op == "placeholder" or _draws(node.target):
                return True
            seen.add(node)
            ahead += node.all_input_nodes
        return False

    def _arg(self, value: Any) -> Any:
        if isinstance(value, tensor.Tensor):
            found = self._nodes.get(id(value)) or self._by_memory.get(_place(value))
            return self._constant(value) if found is None else found
        if isinstance(value, (list, tuple)):
            return (
                type(value)(map(self._arg, value))
                if type(value) in (list, tuple)
                else list(map(self._arg, value))
            )
        if isinstance(value, dict):
            return {key: self._arg(item) for key, item in value.items()}
        return value

    def _constant(self, value: Any) -> Node:
        """A tensor that the program has from elsewhere: a parameter that it reads, or a constant."""
        kind = "_param_constant" if isinstance(value, nn.Parameter) else "_tensor_constant"
        name = f"{kind}{self._constants}"
        self._constants += 1
        if kind == "_param_constant":
            self.holder.register_parameter(name, value)
        else:
            self.holder.register_buffer(name, value.detach())
        node = self.graph.get_attr(name)
        self.know(value, node)
        return node

    def arguments(self, value: Any) -> Any:
        """A value as it stands in the arguments of a node: tensors as their nodes."""
        return self._arg(value)

    def finished(self, result: Any, name: str) -> GraphModule:
        """The graph module, which gives a value."""
        self.graph.output(self._arg(result))
        return GraphModule(self.holder, self.graph, name)


#: What asks for elements but the memory itself, which a recording knows again.
_READS = tensor.overrides.READS - {"numpy", "__array__"}
#: What reads some of its arguments on the way to its operators: their places, and names.
_READ_WITHIN: dict[str, tuple[tuple[int, str], ...]] = {
    "ctc_loss": ((2, "input_lengths"), (3, "target_lengths")),
    "segment_reduce": ((2, "lengths"), (4, "offsets")),
    "tensor_split": ((1, "indices_or_sections"), (1, "tensor_indices_or_sections")),
}


def _read_by(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a function whose elements it decides by."""
    if name in _READS:
        return list(args)
    places = _READ_WITHIN.get(name, ())
    return [args[place] for place, _ in places if place < len(args)] + [kwargs.get(key) for _, key in places]


def _draws(target: Any) -> bool:
    """Whether an operator draws random numbers."""
    arguments = getattr(getattr(target, "operator", None), "arguments", ())
    return any(argument.name == "generator" for argument in arguments)


class _Functions(tensor.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
    """What a recording must know of functions, which it would see as the operators of one call.

    `cond` and `while_loop` of graph modules are handed to it. A question for elements that are others in the next call
    is refused: the graph would keep the answer.
    """

    def __init__(self, recording: OperatorRecording) -> None:
        super().__init__()
        self._recording = recording

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is tensor.cond and isinstance(args[1], GraphModule):
            return self._recording.cond(args[0], (args[1], args[2]), args[3])
        if func is tensor.while_loop and isinstance(args[0], GraphModule):
            return self._recording.while_loop((args[0], args[1]), *args[2:])
        if isinstance(func, tensor.library.Named) and not self._recording.paused:
            return self._recording.whole(func, args, kwargs or {})
        if not self._recording.paused:
            for value in _read_by(func.__name__, args, kwargs or {}):
                if isinstance(value, tensor.Tensor) and self._recording.hangs_on_inputs(value):
                    raise RuntimeError(
                        f"{func.__name__}: It appears that you're trying to get value out of a tracing tensor: the "
                        f"graph would keep the elements that this tensor of shape {tuple(value.shape)} has in this "
                        "one call. Compute with tensors (taeda.where, taeda.cond), or record where nothing is read"
                    )
        return func(*args, **(kwargs or {}))


@contextmanager
def following_branches(recording: OperatorRecording) -> Iterator[None]:
    """Context in which a recording keeps operators, and both graph modules of each `cond` and `while_loop`.

    Raises (calls in it):
        RuntimeError: Elements that hang on inputs, or are drawn, are asked for.
    """
    with recording, _Functions(recording):
        yield


def _place(value: Any) -> Any:
    """Where a tensor's elements are; the tensor's own identity where that says nothing."""
    if not value.numel() or value.device.type == "meta" or value.layout != tensor.strided:
        return id(value)
    return value.data_ptr(), tuple(value.shape), value.stride(), value.dtype, str(value.device)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, tensor.Tensor):
        return True
    return isinstance(value, (tuple, list)) and any(map(_has_tensor, value))


def input_names(names: list[str], args: tuple[Any, ...]) -> list[str]:
    """A name for each leaf of arguments: that of its argument with a number."""
    counts: dict[str, int] = {}
    found = []
    for name, arg in zip(names, args, strict=True):
        for _ in _pytree.tree_leaves(arg):
            counts[name] = counts.get(name, 0) + 1
            found.append(f"{name}_{counts[name]}")
    return found


def _describe(made: GraphModule) -> None:
    """Let nodes tell what they give as fake tensors, which keep no memory."""
    from taeda._subclasses import FakeTensorMode
    from taeda.fx.passes.shape_prop import _extract_tensor_metadata

    mode = FakeTensorMode()

    def fake(value: Any) -> Any:
        plain = type(value) in (tensor.Tensor, nn.Parameter) and value.layout is tensor.strided
        return mode.from_tensor(value) if plain else value

    for node in made.graph.nodes:
        if (value := node.meta.get("val")) is None:
            continue
        node.meta["val"] = _pytree.tree_map_only(tensor.Tensor, fake, value)
        if isinstance(value, tensor.Tensor) and value.layout is tensor.strided:
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)


def recorded(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The graph module of what a function calls with some arguments.

    Args:
        function: The function.
        args: Its arguments; tensors in them are the inputs of the graph, with the other leaves.
        decompositions: Functions that stand for operators, by overload.

    Raises:
        RuntimeError: The function asks for elements that hang on its arguments.
    """
    recording = OperatorRecording(decompositions)
    called = getattr(function, "forward", function)
    names = _names(called, args, {})
    given, spec = _pytree.tree_flatten(args)
    flat = all(map(_pytree.tree_is_leaf, args))
    if not set(names) <= set(_parameters(called)):
        names = [f"arg{number}" for number in range(len(names))]
    for name, leaf in zip(input_names(names, args), given, strict=True):
        recording.input(name, leaf)
    with following_branches(recording):
        result = function(*args)
    leaves, out_spec = _pytree.tree_flatten(result)
    plain = flat and (_pytree.tree_is_leaf(result) or type(result) in (list, tuple))
    made = recording.finished(result if plain else leaves, getattr(function, "__name__", "GraphModule"))
    _describe(made)
    if not plain:
        made.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, spec, out_spec)))
        made.recompile()
    return made
