"""Proxies: what a program is given in the place of values while it is traced."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import dis
import enum
import inspect
import operator
import traceback
from typing import TYPE_CHECKING, Any

from taeda.fx._code import magic_methods, reflectable_magic_methods
from taeda.fx.graph import Graph
from taeda.fx.node import Argument as Argument
from taeda.fx.node import Node, base_types, map_aggregate
from taeda.fx.node import Target as Target
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError",
    "TracerBase",
]  # fmt: skip


class TraceError(ValueError):
    """A program that cannot be traced: it asks for a value that is not known while it is traced."""


@dataclasses.dataclass
class Scope:
    """The module that is being called: its path, and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """A block inside the call of a module."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, dataclasses.replace(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *_: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


#: What may stand in the arguments of a node besides numbers, texts and containers of such.
_constant_types: list[type] = []


def _is_constant(a: Any) -> bool:
    if a is None or a is ... or isinstance(a, (*base_types, enum.Enum)):
        return True
    kinds = (tensor.dtype, tensor.device, tensor.layout, tensor.memory_format, type(NotImplemented))
    return isinstance(a, (*kinds, *_constant_types))


class TracerBase:
    """What all tracers share: how nodes, and proxies of them, are made."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Put a node into the graph; derived classes may change or refuse it."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        from taeda.fx import traceback as notes

        if notes.has_preserved_node_meta():
            node.meta.update(notes.get_current_meta())
        if getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = collections.OrderedDict(self.module_stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node of arguments that may hold proxies, and its proxy."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError("create_arg must give a tuple for a tuple and a dict for a dict")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        proxy = proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)
        if self.record_stack_traces and not proxy.node.stack_trace:
            frames = [f for f in traceback.extract_stack() if "/taeda/fx/" not in f.filename]
            proxy.node.stack_trace = "".join(traceback.StackSummary.from_list(frames).format())
        return proxy

    def create_arg(self, a: Any) -> Any:
        """A value as it stands in the arguments of a node: nodes for proxies, containers rebuilt.

        Raises:
            NotImplementedError: Nodes cannot hold such a value.
        """
        if isinstance(a, Proxy):
            return a.node
        if _is_constant(a):
            return a
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*[self.create_arg(item) for item in a])
        if isinstance(a, tensor.Size):
            return a
        if isinstance(a, (tuple, list)):
            return type(a)([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            return self._create_dict(a)
        if isinstance(a, slice):
            return slice(*(self.create_arg(item) for item in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(item) for item in (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            named = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), named)
        if (callable(a) and (isinstance(a, type) or hasattr(a, "__name__"))) or isinstance(a, tensor.finfo):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_dict(self, a: dict[Any, Any]) -> dict[Any, Any]:
        made = {}
        for key, value in a.items():
            fixed = self.create_arg(key)

            def refuse(item: Any, shown: Any = key) -> Any:
                if isinstance(item, Node):
                    raise RuntimeError(
                        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {shown}"
                    )
                return item

            map_aggregate(fixed, refuse)
            made[fixed] = self.create_arg(value)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """Asked where a program branches on a proxy; derived classes may know."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Asked where a program walks through a proxy; derived classes may know."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Asked for the keys of a proxy."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that only puts nodes at the end of a graph.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """Stands for a node's result while a program is traced; every use becomes another node.

    Args:
        node: The node.
        tracer: Who makes further nodes; without it they go to the end of the node's graph.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        _ = tensor.overrides  # reading it lets functions written in Python ask their arguments
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("__fx_create_arg__", "__array__", "__array_interface__", "__torch_dispatch__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        import copy

        made = Proxy.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked(inspect.currentframe())
        return self.tracer.iter(self) if count is None else (self[i] for i in range(count))

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def __round__(self, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", round, (self, *args), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _in_assert(inspect.currentframe()):
            import taeda

            self.tracer.create_proxy("call_function", taeda._assert, (self, "Assertion failed"), {})
            return True
        return self.tracer.to_bool(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def keys(self) -> Any:
        """The keys, where a program passes `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Proxy:
        kwargs = kwargs or {}
        tracers = dict.fromkeys(proxy.tracer for proxy in proxies_of(args, kwargs))
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        name = getattr(orig_method, "__name__", "")
        if tensor.overrides.is_tensor_method_or_property(orig_method):
            if name in ("__get__", "__set__"):
                owner = orig_method.__self__.__name__
                if name == "__get__":
                    return tracer.create_proxy("call_function", getattr, (args[0], owner), {})
                return tracer.create_proxy("call_function", setattr, (args[0], owner, args[1]), {})
            return tracer.create_proxy("call_method", name, args, kwargs)
        if orig_method is tensor.einsum and len(args) == 2 and isinstance(args[1], (tuple, list)):
            args = (args[0], *args[1])  # operands may come as one sequence; passes look for them one by one
        return tracer.create_proxy(
            "call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name) or None
        )


def proxies_of(*arguments: Any) -> list[Proxy]:
    """The proxies among arguments, in their containers too."""
    found: list[Proxy] = []

    def note(item: Any) -> Any:
        if isinstance(item, Proxy):
            found.append(item)
        return item

    for argument in arguments:
        map_aggregate(argument, note)
    return found


def _instructions(frame: Any) -> list[dis.Instruction]:
    """The instruction that a frame is at, and those behind it in its code."""
    steps = [one for one in dis.get_instructions(frame.f_code) if one.opname not in ("CACHE", "NOT_TAKEN")]
    return steps[bisect.bisect_right(steps, frame.f_lasti, key=lambda one: one.offset) - 1 :]


def _unpacked(frame: Any) -> int | None:
    """Into how many values the caller takes apart what it walks through; None where it does something else."""
    caller = None if frame is None else frame.f_back
    at = None if caller is None else _instructions(caller)[0]
    return at.argval if at is not None and at.opname == "UNPACK_SEQUENCE" else None


def _in_assert(frame: Any) -> bool:
    """Whether the caller's condition belongs to an `assert`: what follows when it fails raises AssertionError."""
    caller = None if frame is None else frame.f_back
    if caller is None:
        return False
    steps = _instructions(caller)
    # Newer versions of Python ask in an instruction of its own, or in that of the comparison, before they jump.
    jump, *failing = steps if "JUMP" in steps[0].opname else steps[1:]
    if not jump.opname.endswith("IF_TRUE") or not failing:
        return False
    loads = failing[0].opname
    return loads == "LOAD_ASSERTION_ERROR" or (
        loads == "LOAD_COMMON_CONSTANT" and failing[0].argrepr == "AssertionError"
    )


class Attribute(Proxy):
    """An attribute of a proxy, and its method where it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads it; made when it is asked for, as methods have none."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter; its shape and the like are known.

    Args:
        tracer: Who makes further nodes.
        node: The node that reads it.
        name: Its path.
        param: The parameter.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The parameter's."""
        return int(self.param.ndim)

    def size(self) -> Any:
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return int(self.param.dim())

    def numel(self) -> int:
        """How many numbers the parameter has."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """How many numbers the parameter has."""
        return int(self.param.nelement())


def _install() -> None:
    def plain(target: Any) -> Any:
        def method(*args: Any, **kwargs: Any) -> Any:
            return args[0].tracer.create_proxy("call_function", target, args, kwargs)

        return method

    def reflected(target: Any) -> Any:
        def method(self: Any, other: Any) -> Any:
            return self.tracer.create_proxy("call_function", target, (other, self), {})

        return method

    for name in magic_methods:
        target = getattr(operator, name, None)
        if target is not None:
            own = f"__{name.strip('_')}__"
            setattr(Proxy, own, plain(target))
            getattr(Proxy, own).__name__ = own
    for name in reflectable_magic_methods:
        target = getattr(operator, name, None)
        if target is not None:
            own = f"__r{name.strip('_')}__"
            setattr(Proxy, own, reflected(target))
            getattr(Proxy, own).__name__ = own
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


_install()
