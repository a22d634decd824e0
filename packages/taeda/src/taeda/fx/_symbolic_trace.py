"""The tracer: runs a program on proxies and keeps the graph of what it called."""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import sys
import threading
import types
import warnings
from typing import TYPE_CHECKING, Any

from taeda import _checks
from taeda.fx._code import _PyTreeCodeGen, _PyTreeInfo
from taeda.fx._compatibility import compatibility  # noqa: F401  # programs take it from here
from taeda.fx._patches import Patcher
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import base_types
from taeda.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase, proxies_of
from taeda.utils import _pytree
from taeda_registry.forks import held_at_fork
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

# Programs that trace in their own way take these from here.
_Patcher = Patcher
_orig_module_call = nn.Module.__call__
_orig_module_getattr = nn.Module.__getattribute__
FunctionType = types.FunctionType
ScriptObject = tensor.ScriptObject
#: Functions that are taken as they are: (the globals that they are looked up in, their name).
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_proxyable_classes: dict[type, None] = {}
_tracing = [0]
#: Tracings change what all threads see, and take it back in order: they take turns, and other threads run as ever.
_turns = held_at_fork(threading.RLock())
_LEAVES = ("taeda_nn", "taeda.nn", "torch.nn", "torch.ao.nn", "taeda.ao.nn")
_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return bool(_tracing[0])


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """Metaclass of classes whose objects a traced program may make of proxies: making one becomes a node.

    Example:
        >>> class Pair(metaclass=taeda.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
    """

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)
        if not is_fx_tracing():
            cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
            return instance
        proxy = _proxy_among(args, kwargs)
        if proxy is None:
            cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
            return instance
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


class PHBase:
    """Stands for an input in `concrete_args`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Stands for an input in `concrete_args`, with notes for its node."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


def wrap(fn_or_name: Any) -> Any:
    """Let a function of this module be taken as it is: its calls become nodes, its inside is not traced.

    Call it at the top of a module, or use it as a decorator there.

    Args:
        fn_or_name: The function, or its name; names reach builtins such as "len" too.

    Raises:
        RuntimeError: Neither a function nor a name.
        NotImplementedError: Called inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _proxy_among(args: Any, kwargs: Any) -> Proxy | None:
    return next(iter(proxies_of(args, kwargs)), None)


_find_proxy = _proxy_among


def _recording(function: Callable[..., Any], target: Any = None, kind: str = "call_function") -> Any:
    """The function, except that a call with a proxy becomes a node."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_among(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy(kind, function if target is None else target, args, kwargs)
        if kind == "call_function":
            made.node.meta["is_wrapped"] = True
        return made

    wrapped._wrapped_for_tracing = True  # type: ignore[attr-defined]
    return wrapped


_create_wrapped_func = _recording


def _create_wrapped_method(cls: type, name: str) -> Any:
    return _recording(getattr(cls, name), name, "call_method")


def _patch_wrapped_functions(patcher: Patcher) -> None:
    for (_, name), frame in _wrapped_fns_to_patch.copy().items():
        function = frame.get(name, getattr(builtins, name, None))
        if function is None or getattr(function, "_wrapped_for_tracing", False):
            continue
        patcher.patch(frame, name, _recording(function))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: Patcher, frame: dict[str, Any], ids: set[int]) -> None:
    if not patcher.visit_once(frame):
        return
    for name, value in frame.copy().items():
        if not name.startswith("_") and callable(value) and id(value) in ids:
            patcher.patch(frame, name, _recording(value))


def _without_stars(function: Any, count: int) -> Any:
    """The function with `count` plain arguments: its *args and **kwargs take one value each, as they are."""
    code = function.__code__
    plain = code.replace(
        co_flags=code.co_flags & ~_STARS, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    return types.FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__)


class Tracer(TracerBase):
    """Runs a function or module on proxies and gives the graph of what it called.

    Args:
        autowrap_modules: Modules whose functions become nodes when they are called with proxies.
        autowrap_functions: Further such functions.
        param_shapes_constant: Take the shapes of parameters as numbers instead of nodes.

    Example:
        >>> graph = taeda.fx.Tracer().trace(lambda x: x.relu() + 1)
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_method', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Any, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        members = [item for module in autowrap_modules for item in module.__dict__.items()]
        self._autowrap_function_ids = {
            id(f) for name, f in members if not name.startswith("_") and callable(f)
        }
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, tuple[str, Any]] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}

    # --- what derived classes change ---

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module becomes one node; else what its forward calls does.

        Args:
            m: The module.
            module_qualified_name: Its path.
        """
        return m.__module__.startswith(_LEAVES) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The path of a module below the one that is traced.

        Raises:
            NameError: It is not below it.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Asked for every call of a module.

        Args:
            m: The module.
            forward: Its call, which traces what is inside.
            args: Positional arguments.
            kwargs: Arguments by name.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as here:
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{here.module_path}@{count}" if count else here.module_path
            self.module_stack[key] = (path, here.module_type)
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Asked for every attribute of a module that is a parameter or buffer."""
        if isinstance(attr_val, nn.Parameter):
            return self._attribute_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, tensor.Tensor):
            return self._attribute_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    _module_getattr = getattr

    def _attribute_proxy(self, value: Any, members: Iterator[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        name = next((name for name, member in members if member is value), None)
        if name is None:
            return value
        if name not in cache:
            factory: dict[str, Any] = {}
            if self.param_shapes_constant:
                factory["proxy_factory_fn"] = functools.partial(self._parameter_proxy, name, value)
            cache[name] = self.create_proxy("get_attr", name, (), {}, **factory)
        return cache[name]

    def _parameter_proxy(self, name: str, value: Any, node: Any) -> ParameterProxy:
        return ParameterProxy(self, node, name, value)

    # --- values in arguments ---

    def create_arg(self, a: Any) -> Any:
        """A value as it stands in the arguments of a node: tensors and modules become attributes of the root."""
        if isinstance(a, nn.Parameter):
            return self._member_node(a, self.root.named_parameters(), "parameter")
        if isinstance(a, tensor.Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, nn.Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        elif isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), items, {})
        if isinstance(a, tensor.Tensor):
            return self._constant_node(a, "_tensor_constant")
        if type(a) in _proxyable_classes:
            return self._constant_node(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _member_node(self, value: Any, members: Iterator[tuple[str, Any]], kind: str) -> Any:
        for name, member in members:
            if member is value:
                return self.create_node("get_attr", name, (), {})
        raise NameError(f"{kind} is not a member of this module")

    def _constant_node(self, value: Any, start: str) -> Any:
        name = self.tensor_attrs.get(value)
        if name is None:
            number = 0
            while hasattr(self.root, f"{start}{number}"):
                number += 1
            name = f"{start}{number}"
            self.tensor_attrs[value] = name
            setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    # --- arguments of the root ---

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Proxies for the arguments of the function that is traced.

        Returns:
            The function to call with them, and they.
        """
        analysed = inspect.unwrap(root_fn)
        if not hasattr(analysed, "__code__"):
            raise AssertionError(f"trace: expected a function written in Python, found {analysed!r}")
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        first = 1 if is_module else 0
        if is_module and total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args: list[Any] = [self.root] if is_module else []
        signature = inspect.signature(analysed)
        plain = names[first:total]
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(plain):
                raise RuntimeError(
                    f"Tracing expected {len(plain)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(plain, concrete_args, strict=True))

        def proxy(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args or {}, signature, analysed)

        args += [proxy(name) for name in plain]
        given = names[:total]
        if code.co_kwonlyargcount or code.co_flags & _STARS:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                given.append("*" + next(rest))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                given.append("**" + next(rest))
            args += [proxy(name) for name in given[total:]]
            root_fn = _without_stars(analysed, len(args))
        flat, in_spec = _pytree.tree_flatten(tuple(args[first:]))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(given[first:], in_spec, None))
        root = args[:first]

        def flattened(*leaves: Any) -> Any:
            result, out_spec = _pytree.tree_flatten(root_fn(*root, *in_spec.unflatten(leaves)))
            codegen = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)  # type: ignore[attr-defined]
            return result

        return flattened, flat

    def _proxy_placeholder(self, name: str, concrete_args: Any, signature: Any, function: Any) -> Any:
        if name in concrete_args:
            count = [0]
            return _pytree.tree_map(lambda x: self._concrete(name, x, count, signature), concrete_args[name])
        parameter = signature.parameters.get(name)
        known = (
            not name.startswith("*") and parameter is not None and parameter.default is not parameter.empty
        )
        default: tuple[Any, ...] = (parameter.default,) if known else ()
        kind = getattr(function, "__annotations__", {}).get(name)
        kind = None if isinstance(kind, str) else kind
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def _concrete(self, name: str, x: Any, count: list[int], signature: Any) -> Any:
        """An input whose value is fixed, checked by the program that is made; a new input where it is not."""
        count[0] += 1
        parameter = signature.parameters[name]
        default = () if parameter.default is parameter.empty else (parameter.default,)
        made = self.create_proxy("placeholder", f"{name}_{count[0]}", default, {})
        if isinstance(x, PHBase):
            for key, value in vars(x).items():
                if not hasattr(made.node, key):
                    setattr(made.node, key, value)
            return made
        if type(x) is bool or (isinstance(x, base_types) and not isinstance(x, tensor.Tensor)):
            text = f"{name} has been specialized to have value {x} but got another value"
            self.create_proxy("call_function", _checks._assert, (made == x, text), {})
            return x
        if x is None:
            text = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (made, text), {})
            return x
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
            "user to make sure that your inputs match the inputs you specialized the function with.",
            stacklevel=2,
        )
        return x

    # --- tracing ---

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a function or module.

        Args:
            root: A module, or a function.
            concrete_args: Inputs with fixed values, by name; the program branches on them as usual.

        Returns:
            The graph. `self.root` is the module that has the attributes it names.

        Raises:
            TraceError: The program branches on or walks through a value that is not known.
        """
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if hasattr(function, "__code__"):
            self.graph._co_fields = {"co_name": function.__code__.co_name}
        self.tensor_attrs = _loose_tensors(self.root)
        if not isinstance(function, types.FunctionType):
            function = function.__call__ if not inspect.ismethod(function) else function
        scope = function.__globals__ if hasattr(function, "__globals__") else {}
        function, args = self.create_args_for_root(function, isinstance(root, nn.Module), concrete_args)
        with _turns, Patcher() as patcher:
            _tracing[0] += 1
            try:
                self._patch(patcher, scope)
                result = self.create_arg(function(*args))
            finally:
                _tracing[0] -= 1
        kind = getattr(function, "__annotations__", {}).get("return")
        self.create_node("output", "output", (result,), {}, type_expr=None if isinstance(kind, str) else kind)
        self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: Patcher, scope: dict[str, Any]) -> None:
        """Make names and attributes what they are while a program is traced."""
        cache: dict[str, Any] = {}
        read, call = nn.Module.__getattribute__, nn.Module.__call__
        tracer, members = self, (nn.Parameter, tensor.Tensor)
        own, here = threading.get_ident(), threading.get_ident

        def patched_read(module: Any, name: str) -> Any:
            value = read(module, name)
            traced = isinstance(value, members) and here() == own
            return tracer.getattr(name, value, cache) if traced else value

        def patched_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if here() != own:
                return call(module, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            _autowrap_check(patcher, _globals_of(module), tracer._autowrap_function_ids)
            return tracer.call_module(module, forward, args, kwargs)

        patcher.patch_method(nn.Module, "__getattribute__", patched_read, deduplicate=False)
        patcher.patch_method(nn.Module, "__call__", patched_call, deduplicate=False)
        _patch_wrapped_functions(patcher)
        _autowrap_check(patcher, scope, self._autowrap_function_ids)
        for module in self._autowrap_search:
            _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)

    def __deepcopy__(self, memo: Any) -> Tracer:
        import copy

        made = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            made.__dict__[name] = (
                value if name in ("root", "_autowrap_search") else copy.deepcopy(value, memo)
            )
        return made


def _globals_of(module: Any) -> dict[str, Any]:
    forward = getattr(getattr(type(module), "forward", None), "__globals__", None)
    return {} if forward is None else forward


def _loose_tensors(root: Any) -> dict[Any, str]:
    """Tensors that modules have as plain attributes, and where."""
    found: dict[Any, str] = {}
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if (
                isinstance(value, tensor.Tensor)
                and name not in module._parameters
                and name not in module._buffers
            ):
                found[value] = f"{path}.{name}" if path else name
    return found


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what `root` does, made of the graph of the calls in it.

    Args:
        root: A module or function.
        concrete_args: Inputs with fixed values, by name.

    Returns:
        A `GraphModule`; it shares parameters and submodules with `root`.

    Raises:
        TraceError: The program branches on or walks through a value that is not known while it is traced.

    Example:
        >>> net = taeda.fx.symbolic_trace(lambda x, y: taeda.relu(x) + y)
        >>> print(net.code.strip())
        def forward(self, x, y):
            relu = torch.relu(x);  x = None
            add = relu + y;  relu = y = None
            return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
