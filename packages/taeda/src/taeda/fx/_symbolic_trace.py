"""The tracer: runs a program with proxies in the place of its inputs and keeps what happens as a graph."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import sys
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import taeda
from taeda import _checks
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.proxy import ParameterProxy, TracerBase, _tracers_in
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.fx.node import Node

__all__ = [
    "PH", "ProxyableClassMeta", "Scope", "ScopeContextManager", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap",
]  # fmt: skip

# Functions that are one step when a proxy is among their arguments: where their name stands, and the name.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods: dict[tuple[type, str], None] = {}
_proxyable: dict[type, None] = {}
_running = 0
_LEAVES = ("taeda_nn.", "taeda.nn", "torch.nn")


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _running > 0


class PHBase:
    """Marks an argument of `concrete_args` that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """Metaclass of classes that a program may make of proxies while it is traced: making one is then a step."""

    def __init__(cls, name: str, bases: tuple, attrs: dict[str, Any]) -> None:
        _proxyable.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if is_fx_tracing():
            tracers = _tracers_in((args, kwargs))
            if tracers:
                return next(iter(tracers.values())).create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


@dataclass
class Scope:
    """The module whose forward is traced: its path and its type."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Lets another module be the scope inside a context."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = Scope(scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class Tracer(TracerBase):
    """Traces modules and functions.

    Args:
        autowrap_modules: Modules whose functions are one step each when they meet a proxy.
        autowrap_functions: Further functions of that kind.
        param_shapes_constant: The shapes of parameters are numbers, not steps.

    Example:
        >>> taeda.fx.Tracer().trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU())).print_tabular()
    """

    _leaf_prefixes: ClassVar[tuple[str, ...]] = _LEAVES

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        found = {
            id(value): value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        found.update((id(func), func) for func in autowrap_functions)
        self._autowrap_function_ids = set(found)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.root: Any = nn.Module()
        self.scope = Scope("", None)
        self.module_stack: dict[str, tuple[str, Any]] = {}
        self.num_calls: dict[str, int] = {}
        self.tensor_attrs: dict[int, tuple[str, Any]] = {}

    # What derived classes change

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a call of a module is one step: true of this library's own modules but Sequential."""
        return m.__module__.startswith(self._leaf_prefixes) and not isinstance(m, nn.Sequential)

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call of module `m` gives; `forward` would run it."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What a program gets that reads member `attr` of a module: of a parameter its step."""
        if isinstance(attr_val, nn.Parameter):
            return self._member_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if isinstance(attr_val, taeda.Tensor) and self.proxy_buffer_attributes:
            return self._member_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _member_proxy(self, value: Any, named: Iterator, cache: dict[str, Any]) -> Any:
        for name, found in named:
            if found is value:
                if name not in cache:
                    shown = self.param_shapes_constant and isinstance(value, nn.Parameter)
                    factory = (lambda node, n=name: ParameterProxy(self, node, n, value)) if shown else None
                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
                return cache[name]
        return value

    def path_of_module(self, mod: Any) -> str:
        """The dotted name of a module below the one that is traced.

        Raises:
            NameError: It is not installed there.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is not None:
                return path
        for name, found in self.root.named_modules():
            if found is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name, `prefix` and a number, that the traced module has no member of."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        """Put a node into the graph, and note in which module it was made."""
        node = super().create_node(*args, **kwargs)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def create_arg(self, a: Any) -> Any:
        """What stands in the graph for an argument: of a tensor its name in the module, which it gets if need be.

        Raises:
            NameError: A parameter that is none of the module's.
        """
        if isinstance(a, nn.Parameter):
            for name, found in self.root.named_parameters():
                if found is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, taeda.Tensor):
            return self.create_node("get_attr", self._name_of_tensor(a), (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if type(a) in _proxyable:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _name_of_tensor(self, tensor: Any) -> str:
        for name, found in self.root.named_buffers():
            if found is tensor:
                return name
        if id(tensor) not in self.tensor_attrs:
            name = self.get_fresh_qualname("_tensor_constant")
            self.tensor_attrs[id(tensor)] = (name, tensor)
            setattr(self.root, name, tensor)
        return self.tensor_attrs[id(tensor)][0]

    # Tracing

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: dict[str, Any] | tuple | None = None
    ) -> tuple[Callable, list[Any]]:
        """Make the placeholders; returns what is called, and with what."""
        code = inspect.unwrap(root_fn).__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = [self.root] if is_module else []
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        inputs = names[len(args) : count]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(inputs):
                raise RuntimeError(
                    f"Tracing expected {len(inputs)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(inputs, concrete_args, strict=True))
        known = inspect.signature(inspect.unwrap(root_fn)).parameters
        hints = getattr(inspect.unwrap(root_fn), "__annotations__", {})
        given = concrete_args or {}
        numbers = {name: number for number, name in enumerate((n for n in inputs if n in given), 1)}
        for name in inputs:
            args.append(self._input(name, numbers.get(name, 0), known[name].default, hints.get(name), given))
        rest = names[count:]
        various = 0
        for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(self.create_proxy("placeholder", stars + rest[various], (), {}))
                various += 1
        if various or code.co_kwonlyargcount:
            root_fn = _with_plain_arguments(inspect.unwrap(root_fn), len(args))
        return root_fn, args

    def _input(self, name: str, number: int, default: Any, hint: Any, concrete: dict[str, Any]) -> Any:
        """The placeholder of one input; of a given value the value itself, which calls are held to."""
        given = () if default is inspect.Parameter.empty else (default,)
        if name not in concrete or concrete[name] is PH:
            return self.create_proxy("placeholder", name, given, {}, type_expr=hint)
        value = concrete[name]
        made = self.create_proxy("placeholder", f"{name}_{number}", given, {})
        if value is None:
            message = f"{name} has been specialized to have value None but got another value"
            same = self.create_proxy("call_function", _is_none, (made,), {})
            self.create_proxy("call_function", _checks._assert, (same, message), {})
        elif isinstance(value, bool | int | float | str | complex):
            message = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _checks._assert, (made == value, message), {})
        return value

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Args:
            root: What is traced.
            concrete_args: Values of inputs that stay as they are.

        Raises:
            TraceError: The program asks a proxy for what depends on its values.
        """
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = nn.Module()
            fn = root
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=type(self))
        self.scope = Scope("", None)
        self.module_stack, self.num_calls = {}, {}
        self.tensor_attrs = {
            id(value): (f"{path}.{name}" if path else name, value)
            for path, module in self.root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, taeda.Tensor)
            and name not in module._parameter_names
            and name not in module._buffer_names
        }
        fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
        with _Patches(self) as patches:
            patches.enter_program(getattr(inspect.unwrap(fn), "__globals__", {}))
            result = self.create_arg(fn(*args))
            hints = getattr(inspect.unwrap(fn), "__annotations__", {})
            self.create_node("output", "output", (result,), {}, type_expr=hints.get("return"))
        self.submodule_paths = None
        return self.graph

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def _is_none(value: Any) -> bool:
    return value is None


def _with_plain_arguments(fn: Any, count: int) -> Callable:
    """A function that takes by position what was to be given by name or gathered by stars."""
    code: CodeType = fn.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    plain = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    made = FunctionType(plain, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    made.__annotations__ = fn.__annotations__
    return made


class _Patches(contextlib.ExitStack):
    """What is exchanged while a program is traced: calls of modules, and functions that are one step."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer
        self._seen: set[int] = set()

    def __enter__(self) -> _Patches:
        global _running
        super().__enter__()
        _running += 1
        self.callback(_stop_running)
        self._patch_modules()
        for (_, name), home in list(_wrapped.items()):
            self._exchange(home, name, home.get(name, getattr(builtins, name, None)))
        for kind, name in _wrapped_methods:
            self._set(kind, name, _step_of_method(getattr(kind, name), name))
        for module in self._tracer._autowrap_search:
            self.enter_program(vars(module))
        return self

    def _patch_modules(self) -> None:
        tracer, call, read = self._tracer, nn.Module.__call__, nn.Module.__getattribute__

        def called(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            self.enter_program(getattr(getattr(mod, "forward", mod), "__globals__", {}))
            return tracer.call_module(mod, forward, args, kwargs)

        self._set(nn.Module, "__call__", called)
        cache: dict[str, Any] = {}

        def got(mod: Any, attr: str) -> Any:
            value = read(mod, attr)
            values = read(mod, "__dict__")
            kinds = ("_parameter_names", "_buffer_names", "_module_names")
            if attr not in kinds and any(attr in values.get(kind, ()) for kind in kinds):
                return tracer.getattr(attr, value, cache)
            return value

        self._set(nn.Module, "__getattribute__", got)

    def enter_program(self, names: dict[str, Any]) -> None:
        """Exchange the functions among a program's global names that are one step."""
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        ids = self._tracer._autowrap_function_ids
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in ids:
                self._exchange(names, name, value)

    def _exchange(self, names: dict[str, Any], name: str, func: Any) -> None:
        if func is None or hasattr(func, "__fx_already_patched"):
            return
        had, before = name in names, names.get(name)
        names[name] = _step_of_function(func, name)
        self.callback(_put_back, names, name, before, had)

    def _set(self, kind: type, name: str, value: Any) -> None:
        had, before = name in vars(kind), vars(kind).get(name)
        setattr(kind, name, value)
        self.callback(_put_member_back, kind, name, before, had)


def _stop_running() -> None:
    global _running
    _running -= 1


def _put_back(names: dict[str, Any], name: str, value: Any, had: bool) -> None:
    if had:
        names[name] = value
    else:
        names.pop(name, None)


def _put_member_back(kind: type, name: str, value: Any, had: bool) -> None:
    if had:
        setattr(kind, name, value)
    else:
        delattr(kind, name)


def _step_of_function(func: Callable, name: str) -> Callable:
    """A function that becomes a step when a proxy is among its arguments."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        tracers = _tracers_in((args, kwargs))
        if not tracers:
            return func(*args, **kwargs)
        made = next(iter(tracers.values())).create_proxy("call_function", func, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    step.__fx_already_patched = True  # type: ignore[attr-defined]
    return step


def _step_of_method(method: Callable, name: str) -> Callable:
    @functools.wraps(method)
    def step(*args: Any, **kwargs: Any) -> Any:
        tracers = _tracers_in((args, kwargs))
        if not tracers:
            return method(*args, **kwargs)
        return next(iter(tracers.values())).create_proxy("call_method", name, args, kwargs)

    return step


def wrap(fn_or_name: Any) -> Any:
    """Mark of a function that is one step of graphs: at the outermost level of a file, as decorator or by name.

    Returns:
        What was given.

    Raises:
        RuntimeError: Neither a function nor a name was given.
        NotImplementedError: Called within a function.

    Example:
        >>> taeda.fx.wrap("len")
        'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    current = sys._getframe(1)
    if current.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(current.f_globals), name] = current.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The program of a module or function as a module made of its graph.

    The program is run once, with proxies for its inputs: conditions and loops must not depend on them.

    Args:
        root: A module or a function.
        concrete_args: Values of inputs that stay as they are.

    Raises:
        TraceError: The program asks a proxy for what depends on its values.

    Example:
        >>> traced = taeda.fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
        >>> print(traced.graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
            %add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})
            return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
