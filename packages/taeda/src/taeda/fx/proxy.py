"""What a tracer gives in the place of values: each use of it becomes a step of the graph."""

from __future__ import annotations

import dataclasses
import dis
import enum
import inspect
import operator
import traceback
import types
from typing import TYPE_CHECKING, Any

import taeda
from taeda import overrides
from taeda.fx._codegen import inplace_methods, magic_methods, reflectable_magic_methods
from taeda.fx.immutable_collections import immutable_dict, immutable_list
from taeda.fx.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.fx.graph import Graph

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

# Arguments that stand in a graph as they are.
_PLAIN = (
    str, bytes, int, float, bool, complex, types.NoneType, types.EllipsisType, enum.Enum, taeda.dtype,
    taeda.device, taeda.layout, taeda.memory_format, type, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.ModuleType,
)  # fmt: skip
_UNPACKING = ("UNPACK_SEQUENCE",)


class TraceError(ValueError):
    """A program that cannot be traced."""


class TracerBase:
    """Turns what a program does with proxies into steps of a graph.

    Attributes:
        graph: The graph that is made.
        record_stack_traces: Note on each node where the step was written.
    """

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Put a node with these arguments, which hold no proxies, into the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What the program goes on with in the place of a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Put a step into the graph whose arguments may be, or hold, proxies; returns the proxy of its result."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(given, tuple) or not isinstance(named, dict):
            raise AssertionError(
                "create_proxy: create_arg must give a tuple for a tuple and a dict for a dict"
            )
        node = self.create_node(kind, target, given, named, name, type_expr)
        made = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = "".join(traceback.format_list(_frames_of_program()))
        return made

    def create_arg(self, a: Any) -> Any:
        """What stands in the graph for an argument.

        Raises:
            NotImplementedError: Graphs cannot hold such a value.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(item) for item in a))
        if isinstance(a, taeda.Size):
            return a if all(type(item) is int for item in a) else tuple(self.create_arg(item) for item in a)
        if isinstance(a, tuple):
            return tuple(self.create_arg(item) for item in a)
        if isinstance(a, list):
            return immutable_list([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            return self._dict_arg(a)
        if isinstance(a, slice):
            return slice(*(self.create_arg(item) for item in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, Node):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", a.__class__, (), values)
        if isinstance(a, _PLAIN) or a is inspect.Parameter.empty:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _dict_arg(self, a: dict) -> Any:
        def key(item: Any) -> Any:
            made = self.create_arg(item)
            if isinstance(made, Node):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {item}"
                )
            return made

        return immutable_dict({key(item): self.create_arg(value) for item, value in a.items()})

    def to_bool(self, obj: Proxy) -> bool:
        """Called when a proxy decides a condition; returns the answer."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when a proxy is iterated; returns the iterator."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args "
            "or **kwargs function argument. Functions that do so can be kept whole with taeda.fx.wrap."
        )

    def keys(self, obj: Proxy) -> Any:
        """Called when a proxy's `keys` are asked for, as `**proxy` does; returns them."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds steps to a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


def _frames_of_program() -> list[traceback.FrameSummary]:
    """The calls in progress, without those of this package."""
    here = __file__.rpartition("/")[0]
    return [frame for frame in traceback.extract_stack() if not frame.filename.startswith(here)]


class Proxy:
    """Stands for a value while a program is traced.

    Operators, methods, attributes and functions of this library that meet it become nodes. What must know the value
    raises TraceError: a condition, a loop over it, `len`.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("tracer", "node") or (k.startswith("__") and k.endswith("__")):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        calling = frame.f_back if frame is not None else None
        if calling is not None:
            step = next(
                (i for i in dis.get_instructions(calling.f_code) if i.offset == calling.f_lasti), None
            )
            if step is not None and step.opname in _UNPACKING:
                return (self[k] for k in range(step.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please "
            "call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers = _tracers_in((args, kwargs))
        if len(tracers) != 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers.values())} while trying to trace operations "
                f"{orig_method}"
            )
        tracer = next(iter(tracers.values()))
        if overrides.is_tensor_method_or_property(orig_method):
            return _method_call(tracer, orig_method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__) if hasattr(tracer, "graph") else None
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _method_call(tracer: TracerBase, method: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The step of a tensor's method or attribute."""
    name = getattr(method, "__name__", "")
    if name == "__get__":
        return tracer.create_proxy("call_function", getattr, (args[0], method.__self__.__name__), {})
    return tracer.create_proxy("call_method", name, args, kwargs)


def _tracers_in(value: Any) -> dict[int, TracerBase]:
    """The tracers of the proxies in a container."""
    found: dict[int, TracerBase] = {}
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Proxy):
            found.setdefault(id(item.tracer), item.tracer)
        elif isinstance(item, tuple | list):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, slice):
            waiting.extend((item.start, item.stop, item.step))
    return found


class Attribute(Proxy):
    """A member of a proxy: becomes a node when it is used otherwise than by being called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter: its shape and size are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _operator_method(name: str) -> Callable[..., Proxy]:
    def method(self: Proxy, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", getattr(operator, name), (self, *args), kwargs)

    method.__name__ = method.__qualname__ = f"__{name.strip('_')}__"
    return method


def _reflected_method(name: str) -> Callable[[Proxy, Any], Proxy]:
    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", getattr(operator, name), (other, self), {})

    method.__name__ = method.__qualname__ = f"__r{name.strip('_')}__"
    return method


for _name in (*magic_methods, *(name for name in inplace_methods if name != "setitem")):
    setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected_method(_name))
Proxy.__hash__ = object.__hash__  # comparing is a step, so the class would lose its hash
del _name
