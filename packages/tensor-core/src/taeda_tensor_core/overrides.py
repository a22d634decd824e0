"""Answering for functions: what `__torch_function__` classes and modes need, under PyTorch's names.

A class with the class method `__torch_function__(cls, func, types, args=(), kwargs=None)` (or `__taeda_function__`)
is asked whenever one of its instances is an argument of a public function, method, operator or attribute of tensors;
the class need not derive from Tensor. It returns the result, or NotImplemented so that the next class is asked.
Subclasses of Tensor inherit an answer: call the function, give results of the class.

Example:
    >>> class Log(taeda.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(taeda.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     x = taeda.ones(2)
    taeda.ones
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda_registry import ProviderNotFoundError, resolve
from taeda_tensor_core import _C, _overridable
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._info import library_name
from taeda_tensor_core._overridable import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

# A program that reads this module means to answer.
_C._arm_overrides()

#: Methods, and functions beside them, that ask about a tensor itself and not for its elements.
QUESTIONS = frozenset({
    "dim", "size", "numel", "nelement", "ndimension", "stride", "storage_offset", "element_size", "is_contiguous",
    "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference", "is_shared", "is_pinned",
    "is_same_size", "is_coalesced", "is_storage", "is_tensor", "get_device", "type", "result_type", "can_cast",
    "promote_types", "__len__", "__hash__",
})  # fmt: skip
#: Methods, and functions beside them, that give elements, or an answer that hangs on them, as Python's values.
READS = frozenset({
    "item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__complex__", "__index__",
    "__contains__", "is_nonzero", "equal", "allclose",
})  # fmt: skip
#: Whether one of the arguments in a sequence answers, or a mode is in force on this thread.
has_torch_function = _C._has_torch_function
#: The same of one argument.
has_torch_function_unary = _C._has_torch_function_unary
#: The same of several.
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Ask the mode in force, then the classes of `relevant_args`, for the result of `public_api(*args, **kwargs)`.

    Raises:
        TypeError: All of them returned NotImplemented; the text names them.
    """
    return _C._handle_override(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable], Callable]:
    """Decorator for a function of one's own: `dispatcher` gives, for its arguments, those that may answer.

    Example:
        >>> @taeda.overrides.wrap_torch_function(lambda a: (a,))
        ... def double(a):
        ...     return a + a
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def asking(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(asking, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return asking

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a Tensor or of a class that answers for functions."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__") or hasattr(inp, "__taeda_function__")


class TorchFunctionMode:
    """Context in which this object's `__torch_function__(func, types, args, kwargs)` answers for public functions.

    That holds for the thread that entered it, also without any subclass among the arguments and for functions that
    make tensors.
    Inside the method the mode is off and the next outer one in force.
    """

    def __torch_function__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        depth = len(_C._function_mode_stack())
        try:
            _C._push_function_mode(self)
        except BaseException:  # it is no mode, or the handler of a signal raises when it stands there
            if len(_C._function_mode_stack()) > depth:
                _C._pop_function_mode()
            raise
        return self

    __exit__ = _C._leave_function_mode

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A new mode; enter it with `with`."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that changes nothing."""

    def __torch_function__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    stack = _C._function_mode_stack()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return _C._function_mode_stack()


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context inside a class's `__torch_dispatch__` in which calls are recorded and classes asked as outside of it."""
    from taeda_tensor_core.library import POSITIONS

    off = {"autograd": not _C.is_grad_enabled(), "dispatch": False, "below_autograd": False}
    before = [(POSITIONS[name], _C._exclude_layer(POSITIONS[name], value)) for name, value in off.items()]
    try:
        yield
    finally:
        for position, excluded in before:
            _C._exclude_layer(position, excluded)


# --- which functions there are ---

_DESCRIPTORS = (types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType)
#: Of Tensor: how objects are made, compared by identity and stored; Python asks for them by itself.
_OWN = frozenset({
    "__class__", "__delattr__", "__dict__", "__dir__", "__doc__", "__getattribute__", "__getstate__",
    "__hash__", "__init__", "__init_subclass__", "__module__", "__new__", "__reduce__", "__repr__",
    "__setattr__", "__sizeof__", "__str__", "__subclasshook__", "__torch_dispatch__", "__torch_function__",
    "__taeda_function__",
    "__weakref__", "__array_interface__", "__array_priority__", "_make_subclass", "_make_wrapper_subclass",
    "_storage_facts", "_resize_storage", "__dictoffset__", "__weaklistoffset__", "as_subclass", "__getnewargs__",
})  # fmt: skip
#: Functions that take no tensor's place: settings, files, borders to others.
_IGNORED = (
    "are_deterministic_algorithms_enabled", "broadcast_shapes", "can_cast", "empty_cache", "from_dlpack",
    "from_numpy", "frombuffer", "get_default_dtype", "get_include", "get_library_dir", "get_num_threads",
    "get_ops_dir", "get_rng_state", "initial_seed", "is_deterministic_algorithms_warn_only_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled", "is_tensor", "load", "manual_seed", "promote_types", "save", "seed",
    "set_default_dtype", "set_num_threads", "set_printoptions", "set_rng_state", "use_deterministic_algorithms",
    "abi_capsule", "current_stream",
    "set_stream", "no_grad", "enable_grad", "inference_mode", "set_grad_enabled",
)  # fmt: skip


def _package() -> types.ModuleType:
    return sys.modules[__package__]


def _operator_functions() -> Iterator[tuple[types.ModuleType, Callable]]:
    named = set(map(id, _overridable.known()))
    package = _package()
    spaces = [getattr(package, name) for name in _overridable.NAMESPACES]
    for module in (package, _C.ops, *spaces):
        for name, value in vars(module).copy().items():
            builtin = isinstance(value, types.BuiltinFunctionType) and (
                module in spaces or getattr(_C.ops, name, None) is value
            )
            if not name.startswith("_") and (builtin or id(value) in named):
                yield module, value


def _tensor_members() -> Iterator[Callable]:
    for name, value in vars(Tensor).copy().items():
        if name in _OWN:
            continue
        if isinstance(value, types.GetSetDescriptorType):
            yield value.__get__
        elif isinstance(value, (*_DESCRIPTORS, types.FunctionType)):
            yield value


def _home(function: Callable) -> types.ModuleType:
    """The outermost package that has the function under its name."""
    name = function.__module__
    home = sys.modules.get(name, _package())
    while "." in name:
        name = name.rpartition(".")[0]
        if getattr(sys.modules.get(name), function.__name__, None) is function:
            home = sys.modules[name]
    return home


def _load_layers() -> None:
    """Functions of layers are known when those have been loaded, where there are some."""
    try:
        layers = resolve("nn")
    except ProviderNotFoundError:
        return
    for name in ("functional", "init"):
        getattr(layers, name)


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Every function that can be answered for, by the module or class it is found in."""
    _load_layers()
    found: dict[Any, dict[int, Callable]] = {}
    methods = set(map(id, vars(Tensor).values()))
    for module, function in _operator_functions():
        found.setdefault(module, {})[id(function)] = function
    for function in _overridable.known():
        if id(function) not in methods and id(function) not in found.get(_package(), {}):
            found.setdefault(_home(function), {})[id(function)] = function
    result: dict[Any, list[Callable]] = {home: list(functions.values()) for home, functions in found.items()}
    result[Tensor] = list(_tensor_members())
    return result


def get_ignored_functions() -> set[Callable]:
    """Public functions for which nobody is asked."""
    package = _package()
    found = {getattr(package, name) for name in _IGNORED if hasattr(package, name)}
    own = (inspect.getattr_static(Tensor, name, None) for name in _OWN)
    return found | {item for item in own if callable(item)}


def get_testing_overrides() -> dict[Callable, Callable]:
    """For every function that can be answered for, one that has its arguments and gives -1."""
    from taeda_tensor_core.library._told_signatures import stand_in

    methods = _tensor_functions()
    return {
        function: stand_in(function, function in methods)
        for functions in get_overridable_functions().values()
        for function in functions
    }


def get_default_nowrap_functions() -> set[Callable]:
    """Functions whose results `Tensor.__torch_function__` gives as they are."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


_OF_ATTRIBUTES = frozenset({"__get__", "__set__", "__delete__"})


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method of Tensor or reads or writes one of its attributes."""
    if func in _tensor_functions():
        return True
    return getattr(func, "__name__", "") in _OF_ATTRIBUTES


def _tensor_functions() -> set[Callable]:
    return set(_tensor_members())


def _accessor_name(func: Any) -> str | None:
    if not isinstance(func, types.MethodWrapperType) or func.__name__ not in (
        "__get__",
        "__set__",
        "__delete__",
    ):
        return None
    owner = func.__self__
    return (
        f"taeda.Tensor.{owner.__name__}.{func.__name__}"
        if getattr(owner, "__objclass__", None) is Tensor
        else None
    )


def misplaced(error: AttributeError, name: str, kind: type) -> Exception:
    """What stands for the error of a function of a class that was given a plain tensor where it reads its own.

    It is the error itself unless a tensor lacks a part that `kind` declares, or has.
    """
    declared = error.name in kind.__annotations__ or hasattr(kind, error.name)
    return plain_beside(name, kind) if isinstance(error.obj, Tensor) and declared else error


def plain_beside(name: str, kind: type) -> NotImplementedError:
    """The error of a function that has no form for a plain tensor in one place and one of a class in another."""
    return NotImplementedError(
        f"{name}: not defined for a plain tensor with a {kind.__name__} as another argument; "
        "give all of them as plain tensors"
    )


def resolve_name(f: Callable) -> str | None:
    """The dotted name by which programs reach a function; None for one that is not public.

    Example:
        >>> taeda.overrides.resolve_name(taeda.Tensor.add)
        'taeda.Tensor.add'
    """
    name = _own_name(f)
    return f"{library_name()}{name[5:]}" if name and name.startswith("taeda.") else name


def _own_name(f: Callable) -> str | None:
    """The same, whatever name the library goes by."""
    accessor = _accessor_name(f)
    if accessor is not None:
        return accessor
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    spaces = ((getattr(_C, space), f"taeda.{space}") for space in _overridable.NAMESPACES)
    layers = (sys.modules.get("taeda_nn.functional"), "taeda.nn.functional")
    for home, prefix in (
        (Tensor, "taeda.Tensor"), (_package(), "taeda"), *spaces, layers, (_C.ops, "taeda.ops"),
    ):  # fmt: skip
        if inspect.getattr_static(home, name, None) is f:
            return f"{prefix}.{name}"
    home = _public_module(getattr(f, "__module__", None) or "", name, f)
    return f"{home}.{name}".replace("taeda_nn.", "taeda.nn.", 1) if home else None


#: Kinds of functions that stay where they are, and hold nothing of a program's.
_FIXED = (types.BuiltinFunctionType, types.MethodDescriptorType, types.MethodWrapperType)


def path_of(func: Callable) -> tuple[str, ...]:
    """The parts of the name by which programs reach a function, or its own name.

    For the library's classes of tensors, which are told of every call.
    """
    return _fixed_path(func) if isinstance(func, _FIXED) else _path(func)


def _path(func: Callable) -> tuple[str, ...]:
    with _C.DisableTorchFunctionSubclass():
        return tuple((_own_name(func) or getattr(func, "__name__", "?")).split("."))


_fixed_path = functools.lru_cache(1024)(_path)


def name_at(path: tuple[str, ...]) -> str:
    """A function's name by its path: ``matmul``; ``T`` of what reads that attribute, ``T__set__`` of what writes it."""
    name = path[-1]
    if name not in _OF_ATTRIBUTES:
        return name
    return path[-2] if name == "__get__" else f"{path[-2]}{name}"


def answers_in(table: dict[str, Callable]) -> Callable[..., Callable[[Callable], Callable]]:
    """A decorator, given names: the function is what stands under them in the table of a class of tensors."""

    def named(*names: str) -> Callable[[Callable], Callable]:
        def put(function: Callable) -> Callable:
            table.update(dict.fromkeys(names, function))
            return function

        return put

    return named


def _public_module(module: str, name: str, f: Callable) -> str | None:
    """The outermost package around a module that shows the function; None when none of them does."""
    parts = module.split(".")
    around = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return next((path for path in around if getattr(sys.modules.get(path), name, None) is f), None)
