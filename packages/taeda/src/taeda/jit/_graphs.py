"""Graphs of operators as a tracer of PyTorch's gives them: what programs read that count operations or draw networks.

A trace keeps every operator that the program itself calls, under PyTorch's name for it, with its arguments as values
that know their shapes, and the modules in which it was called. Operators that others consist of are not met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.utils._pytree import tree_leaves
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Graph", "Node", "Value", "trace_graph"]

# Methods of nodes that give attributes, by the types of what they give.
_ATTRIBUTE_KINDS: dict[str, Any] = {"i": int, "f": float, "s": (str, tensor.device), "t": tensor.Tensor}


class Type:
    """The type of a value."""

    def __init__(self, name: str) -> None:
        self._name = name

    def kind(self) -> str:
        """Its kind: "IntType", "TensorType" ..."""
        return f"{self._name}Type"

    @property
    def annotation_str(self) -> str:
        """As a program would write it."""
        return self._name

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__


class TensorType(Type):
    """The type of a tensor, of which all is known."""

    def __init__(self, value: Any) -> None:
        super().__init__("Tensor")
        self._sizes, self._strides = list(value.shape), list(value.stride())
        self._dtype, self._device, self._tracked = value.dtype, value.device, value.requires_grad
        self._older = value.type().rpartition(".")[2].removesuffix("Tensor")

    def sizes(self) -> list[int]:
        """Its shape."""
        return list(self._sizes)

    def strides(self) -> list[int]:
        """Its strides."""
        return list(self._strides)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self._sizes)

    def dtype(self) -> Any:
        """Its dtype."""
        return self._dtype

    def scalarType(self) -> str:
        """Its dtype by PyTorch's older name: "Float", "Long" ..."""
        return self._older

    def device(self) -> Any:
        """Its device."""
        return self._device

    def requires_grad(self) -> bool:
        """Whether it requires gradients."""
        return bool(self._tracked)

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self._sizes))
        strides = ", ".join(map(str, self._strides))
        flags = f"strides=[{strides}], requires_grad={int(self._tracked)}, device={self._device}"
        return f"{self.scalarType()}({sizes}{', ' if sizes else ''}{flags})"

    __repr__ = __str__


#: Names of the types of constants.
_CONSTANTS = {bool: "Bool", int: "Int", float: "Float", complex: "Complex", str: "String", type(None): "None"}


class Value:
    """What a node gives or takes."""

    def __init__(self, number: int, kind: Type, node: Node | None = None, constant: Any = None) -> None:
        self._name, self._type, self._node, self._constant = str(number), kind, node, constant
        self._uses: list[Node] = []

    def type(self) -> Type:
        """Its type."""
        return self._type

    def node(self) -> Node | None:
        """The node that gives it."""
        return self._node

    def debugName(self) -> str:
        """Its name in the text of the graph."""
        return self._name

    def setDebugName(self, name: str) -> None:
        """Name it."""
        self._name = str(name)

    def unique(self) -> int | str:
        """Its number, or the name that it was given."""
        return int(self._name) if self._name.isdigit() else self._name

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor, of which shape, dtype and device are known."""
        return isinstance(self._type, TensorType)

    def requires_grad(self) -> bool:
        """Whether it is a tensor that requires gradients."""
        return isinstance(self._type, TensorType) and self._type.requires_grad()

    def toIValue(self) -> Any:
        """The constant that it is; None for others."""
        return self._constant

    def uses(self) -> list[Node]:
        """The nodes that take it."""
        return list(self._uses)

    def __repr__(self) -> str:
        return f"{self._name} defined in ({'' if self._node is None else self._node})"


class Node:
    """One operator that was called, or a constant or list among the arguments of one."""

    def __init__(self, kind: str, scope: str) -> None:
        self._kind, self._scope = kind, scope
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """Its name, "aten::relu"."""
        return self._kind

    def scopeName(self) -> str:
        """The names that were pushed on the trace when it was called, divided by "/"."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """Its arguments."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """Its results."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """Number of arguments."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """Number of results."""
        return len(self._outputs)

    def inputsAt(self, place: int) -> Value:
        """One of its arguments."""
        return self._inputs[place]

    def outputsAt(self, place: int) -> Value:
        """One of its results."""
        return self._outputs[place]

    def output(self) -> Value:
        """Its one result.

        Raises:
            RuntimeError: There are several.
        """
        if len(self._outputs) != 1:
            raise RuntimeError(f"{self._kind}: expected one output, found {len(self._outputs)}")
        return self._outputs[0]

    def attributeNames(self) -> list[str]:
        """Names of attributes: that of a constant is "value"."""
        return ["value"] if self._kind == "prim::Constant" and self._outputs[0].toIValue() is not None else []

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute of that name."""
        return name in self.attributeNames()

    def kindOf(self, name: str) -> str:
        """Which of the methods `i`, `f`, `s`, `t` and `ival` gives an attribute: by its value.

        Raises:
            RuntimeError: There is no attribute of that name.
        """
        if not self.hasAttribute(name):
            raise RuntimeError(f"required keyword attribute {name!r} is undefined: a node of {self._kind}")
        value = self._outputs[0].toIValue()
        for kind, types in _ATTRIBUTE_KINDS.items():
            if isinstance(value, types):
                return kind
        return "ival"

    def _attribute(self, name: str, kind: str) -> Any:
        found = self.kindOf(name)
        if found != kind:
            raise RuntimeError(
                f"required keyword attribute {name!r} has the wrong type: {found!r} gives it, not {kind!r}"
            )
        return self._outputs[0].toIValue()

    def i(self, name: str) -> int:
        """The attribute, a whole number or a truth value."""
        return int(self._attribute(name, "i"))

    def f(self, name: str) -> float:
        """The attribute, a number."""
        return float(self._attribute(name, "f"))

    def s(self, name: str) -> str:
        """The attribute, a text or the name of a device."""
        return str(self._attribute(name, "s"))

    def t(self, name: str) -> Any:
        """The attribute, a tensor."""
        return self._attribute(name, "t")

    def ival(self, name: str) -> Any:
        """The attribute, of another kind."""
        return self._attribute(name, "ival")

    def take(self, value: Value) -> None:
        """Another argument."""
        self._inputs.append(value)
        value._uses.append(self)

    def __str__(self) -> str:
        results = ", ".join(f"%{v.debugName()} : {v.type()}" for v in self._outputs)
        taken = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        constant = f"[value={self._outputs[0].toIValue()!r}]" if self.attributeNames() else ""
        scope = f" # scope: {self._scope}" if self._scope else ""
        return f"{results} = {self._kind}{constant}({taken}){scope}\n"

    __repr__ = __str__


class Graph:
    """What a program called, in its order."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def nodes(self) -> Iterator[Node]:
        """Its nodes in the order of the calls."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """The tensors it was given, then parameters and buffers."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The tensors of its result."""
        return iter(self._outputs)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of one kind."""
        return [node for node in self._nodes if node.kind() == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of one kind."""
        return next(iter(self.findAllNodes(kind)), None)

    def __str__(self) -> str:
        given = ",\n      ".join(f"%{v.debugName()} : {v.type()}" for v in self._inputs)
        result = ", ".join(f"%{v.debugName()}" for v in self._outputs)
        return f"graph({given}):\n" + "".join(f"  {node}" for node in self._nodes) + f"  return ({result})\n"

    __repr__ = __str__


class _Tracing(tensor.library.Layer):  # type: ignore[misc, name-defined]
    """Keeps what is called, and knows in which modules."""

    def __init__(self) -> None:
        self.graph, self.scopes = Graph(), [""]
        self.values: dict[int, Value] = {}
        self.kept: list[Any] = []
        self.count = 0
        super().__init__("trace of a graph", "tracing")

    # --- scopes, by the names that programs know ---

    def push_scope(self, name: str) -> None:
        """What is called from here on is called in a module of this name."""
        self.scopes.append(f"{self.scopes[-1]}/{name}" if self.scopes[-1] else name)

    def pop_scope(self) -> None:
        """The module has returned."""
        self.scopes.pop()

    # --- values ---

    def value(self, kind: Type, node: Node | None = None, constant: Any = None) -> Value:
        """A new value."""
        made = Value(self.count, kind, node, constant)
        self.count += 1
        return made

    def know(self, item: Any, node: Node | None) -> Value:
        """A value of a tensor, which stands for it from here on."""
        self.kept.append(item)
        made = self.values[id(item)] = self.value(TensorType(item), node)
        return made

    def of(self, item: Any) -> Value:
        """The value of an argument: of a tensor its own, else that of a node of a constant or a list."""
        if isinstance(item, tensor.Tensor):
            found = self.values.get(id(item))
            return self.know(item, None) if found is None else found
        if isinstance(item, (list, tuple)):
            return self._list(item)
        node = Node("prim::Constant", self.scopes[-1])
        made = self.value(Type(_CONSTANTS.get(type(item), type(item).__name__)), node, item)
        node._outputs.append(made)
        self.graph._nodes.append(node)
        return made

    def _list(self, items: Any) -> Value:
        node = Node("prim::ListConstruct", self.scopes[-1])
        for item in items:
            node.take(self.of(item))
        made = self.value(Type("List"), node)
        node._outputs.append(made)
        self.graph._nodes.append(node)
        return made

    # --- calls ---

    def __call__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let it run, and keep it."""
        name, given = tensor.library.aten_call(op.name, (*args, *kwargs.values()))
        values = [self.of(item) for item in given]
        result = op(*args, **kwargs)
        node = Node(f"aten::{name}", self.scopes[-1])
        for value in values:
            node.take(value)
        self.graph._nodes.append(node)
        made = args[:1] if result is None else result if isinstance(result, (tuple, list)) else (result,)
        for item in made:
            if isinstance(item, tensor.Tensor):
                node._outputs.append(self.know(item, node))
        return result


def trace_graph(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Graph, Any]:
    """Run a function or module once; the graph of what it called, and its result."""
    trace = _Tracing()
    state = function.state_dict(keep_vars=True).values() if isinstance(function, nn.Module) else ()
    for item in (*tree_leaves((args, kwargs)), *state):
        if isinstance(item, tensor.Tensor) and id(item) not in trace.values:
            trace.graph._inputs.append(trace.know(item, None))
    tensor.library.traces.append(trace)
    try:
        with trace:
            result = function(*args, **kwargs)
    finally:
        tensor.library.traces.remove(trace)
    for item in tree_leaves(result):
        if isinstance(item, tensor.Tensor):
            trace.graph._outputs.append(trace.of(item))
    return trace.graph, result


def is_tracing() -> bool:
    """Whether a graph is being traced."""
    return bool(tensor.library.traces)
