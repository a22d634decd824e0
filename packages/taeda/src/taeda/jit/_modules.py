"""Modules as scripts and traces: the module itself behind a class of its own, and the graph of a trace."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
import textwrap
import warnings
from typing import TYPE_CHECKING, Any

from taeda.jit._state import _enabled, following
from taeda.jit._types import Attribute
from taeda_registry.slots import nn, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.fx import GraphModule

_MISSING_GRAPH = "there is no graph of this {}: {}; trace it with example inputs"


class Error(RuntimeError):
    """What scripts raise: their own assertions and exceptions, which stand behind it."""

    __module__ = "taeda.jit"


def _tell(error: Exception) -> None:
    """Python's own exceptions become those of scripts."""
    if type(error).__module__ == "builtins" and not isinstance(error, RuntimeError):
        raise Error(f"{type(error).__name__}: {error}") from error


class _Always:
    """A method that is found though the module has an attribute of the same name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        return self._function if obj is None else self._function.__get__(obj)

    def __set__(self, obj: Any, value: Any) -> None:
        obj.__dict__[self._function.__name__] = value


class ScriptModule(nn.Module):
    """A module whose methods are marked with `script_method`; it runs as the Python that it is.

    Example:
        >>> class Double(taeda.jit.ScriptModule):
        ...     @taeda.jit.script_method
        ...     def forward(self, x):
        ...         return x * 2
        >>> Double()(taeda.ones(1))
        tensor([2.])
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.value if isinstance(value, Attribute) else value)

    @property
    def original_name(self) -> str:
        """Name of the class that was scripted."""
        return type(self).__name__

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return _source(self.forward)

    @property
    def graph(self) -> Any:
        """The graph of `forward`.

        Raises:
            NotImplementedError: It cannot be traced without inputs.
        """
        return _graph_module(self).graph

    inlined_graph = graph

    @_Always
    def save(self, f: Any, _extra_files: dict[str, Any] | None = None, **_: Any) -> None:
        """Write it to a file; see `taeda.jit.save`."""
        from taeda.jit import _files

        _files.save(self, f, _extra_files)

    @_Always
    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """What `save` would write."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    @_Always
    def define(self, src: str) -> None:
        """Give the class of this module a method by its source."""
        for name, value in _defined(src, sys._getframe(1)).items():
            setattr(type(self), name, value)


def own(module: Any, made: dict[int, Any] | None = None) -> Any:
    """A module and those below it with attributes of their own, over the same parameters, buffers and values.

    So what is scripted stays in its mode when the program's module goes into another, and the other way round.
    """
    made = {} if made is None else made
    if isinstance(module, ScriptModule):  # has its own
        return module
    if id(module) not in made:
        copied = made[id(module)] = copy.copy(module)
        for name, value in vars(copied).items():
            if isinstance(value, Attribute):
                vars(copied)[name] = value.value
        for name, child in copied._modules.items():
            if child is not None:
                copied._modules[name] = own(child, made)
    return made[id(module)]


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module: it shares everything with the one that it is given, and is of this class.

    Attributes of the module, its methods too, are found here.
    """

    __slots__ = ("_original", "_recorded")

    _original: Any
    _recorded: Any

    def __init__(self, original: Any, recorded: Any = None) -> None:
        object.__setattr__(self, "__dict__", original.__dict__)
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_recorded", recorded)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_original"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module does."""
        try:
            return self._original.forward(*args, **kwargs)
        except Exception as error:
            _tell(error)
            raise

    @property
    def original_name(self) -> str:
        """Name of the class that was scripted or traced."""
        return type(self._original).__name__

    @property
    def code(self) -> str:
        """The source: of the graph of a trace, else of the module's `forward`."""
        return self._recorded.code if self._recorded is not None else _source(self._original.forward)

    def extra_repr(self) -> str:
        """The name of the module's class."""
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self._original)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._original)

    def __getitem__(self, index: Any) -> Any:
        return self._original[index]

    def __contains__(self, item: Any) -> bool:
        return item in self._original

    def __bool__(self) -> bool:
        return True

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._original)})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._original, self._recorded)

    def __copy__(self) -> Any:
        return type(self)(copy.copy(self._original), self._recorded)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self)(copy.deepcopy(self._original, memo), copy.deepcopy(self._recorded, memo))
        memo[id(self)] = made
        return made


class TracedModule(RecursiveScriptModule):
    """What `trace` makes of a module."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module did when it was traced."""
        with following:
            return super().forward(*args, **kwargs)


class TopLevelTracedModule(TracedModule):
    """What `trace` makes of the module that it was given."""


class ScriptFunction:
    """What `script` and `trace` make of a function: it calls the function.

    Args:
        function: The function.
        recorded: The graph module of its trace.
        traced: Whether it is what `trace` made, with a graph or without.
    """

    def __init__(
        self, function: Callable[..., Any], recorded: GraphModule | None = None, traced: bool = False
    ) -> None:
        self._function, self._recorded, self._traced = function, recorded, traced
        self.__name__ = self.name = getattr(function, "__name__", "function")
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__module__ = getattr(function, "__module__", __name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            with following if self._traced else contextlib.nullcontext():
                return self._function(*args, **kwargs)
        except Exception as error:
            _tell(error)
            raise

    @property
    def code(self) -> str:
        """The source of the graph, or of the function."""
        return self._recorded.code if self._recorded is not None else _source(self._function)

    @property
    def graph(self) -> Any:
        """The graph of the trace."""
        return _graph_module(self).graph

    inlined_graph = graph

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write it to a file; see `taeda.jit.save`."""
        from taeda.jit import _files

        _files.save(self, f, _extra_files)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_function"], name)

    def __reduce__(self) -> Any:
        public = self.__dict__
        home = sys.modules.get(public["__module__"])
        if self._recorded is None and getattr(home, public["__qualname__"], None) is self:
            return str(public["__qualname__"])  # the function itself is no longer found under its name
        return ScriptFunction, (self._function, self._recorded)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptFunction:
        return self

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.__module__}.{self.__qualname__}>"


def _source(function: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise RuntimeError(f"the source of {function!r} is not known") from error


def _graph_module(obj: Any) -> Any:
    """The graph module of a trace; a symbolic trace where there is none yet."""
    recorded = getattr(obj, "_recorded", None)
    if recorded is not None:
        return recorded
    from taeda.jit import _recording

    program = getattr(obj, "_original", None) or getattr(obj, "_function", None) or obj
    try:
        return _recording.graph_module(program)
    except Exception as error:
        kind = "module" if isinstance(program, nn.Module) else "function"
        raise NotImplementedError(_MISSING_GRAPH.format(kind, error)) from error


def _scope() -> dict[str, Any]:
    """Names that scripts use without importing them."""
    import typing

    import taeda

    common = ("Any", "Dict", "List", "Optional", "Tuple", "Union")
    return {"torch": taeda, "Tensor": tensor.Tensor, **{name: getattr(typing, name) for name in common}}


def _defined(source: str, frame: Any, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """The functions of a source that uses the names that the code of a frame knows, and further ones."""
    scope = {**frame.f_globals, **frame.f_locals, **_scope(), **(known or {})}
    before = dict(scope)
    exec(compile(textwrap.dedent(source), "<script>", "exec"), scope)
    made = {name: value for name, value in scope.items() if value is not before.get(name)}
    return {name: value for name, value in made.items() if inspect.isfunction(value)}


class CompilationUnit:
    """Functions by their source.

    Args:
        lang: The source of functions, which use names as the caller does.

    Example:
        >>> unit = taeda.jit.CompilationUnit("def double(x):\\n    return x * 2")
        >>> unit.double(taeda.ones(1))
        tensor([2.])
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._functions: dict[str, Any] = {}
        if lang is not None:
            self.define(lang, _frames_up=_frames_up + 1)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add functions."""
        self._functions |= _defined(lang, sys._getframe(1 + _frames_up), self._functions)

    def __getattr__(self, attr: str) -> Any:
        found = self.__dict__.get("_functions", {}).get(attr)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute {attr!r}")
        return found


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """A copy of a scripted module for inference: its parameters and buffers are constants, which no list of them names.

    Args:
        mod: A scripted or traced module in evaluation mode.
        preserved_attrs: What stays a parameter or buffer; names in inner modules have dots.
        optimize_numerics: Accepted.

    Raises:
        RuntimeError: It is none, or is in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training and "training" not in (preserved_attrs or ()):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in evaluation mode; call eval() first"
        )
    import copy

    frozen = copy.deepcopy(mod).requires_grad_(False)
    kept = set(preserved_attrs or ())
    for prefix, part in frozen.named_modules():
        for held in (part._parameters, part._buffers):
            for name in [name for name in held if f"{prefix}.{name}".lstrip(".") not in kept]:
                constant = held.pop(name)
                vars(part)[name] = None if constant is None else constant.detach()
    return frozen


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Nothing: a frozen module runs as it is."""


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module, frozen.

    Raises:
        RuntimeError: It is no scripted or traced module.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    return freeze(mod.eval()) if mod.training else freeze(mod)


# --- traces ---


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """A module or function that can be saved without its source, made by running it once.

    Called, it runs the Python it was made of, so it follows other branches and sizes as that does; `is_tracing` is
    true there, as it was in the trace. Saved, it is the graph of what this one run did.

    Args:
        func: A module or function.
        example_inputs: A tensor, or a tuple of arguments.
        check_trace: Run the graph on the same inputs, and warn where its result is another.
        check_tolerance: How far numbers may be apart.
        example_kwarg_inputs: Arguments by name, in the place of `example_inputs`.

    Returns:
        A `TopLevelTracedModule` of a module, a `ScriptFunction` of a function.

    Raises:
        RuntimeError: No inputs are given, or both kinds.

    Example:
        >>> net = taeda.jit.trace(taeda.nn.Linear(2, 3), taeda.ones(1, 2))
        >>> net(taeda.ones(5, 2)).shape
        Size([5, 3])
    """
    if not _enabled:
        return func
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("trace: give either example_inputs or example_kwarg_inputs")
    args = _as_tuple(example_inputs)
    kwargs = dict(example_kwarg_inputs or {})
    if isinstance(func, ScriptModule):
        return func
    if not callable(func):
        raise TypeError(f"trace: expected a module or function, found {type(func).__name__}")
    recorded = _recorded(func, args, kwargs, check_tolerance if check_trace else None)
    if isinstance(func, nn.Module):
        return TopLevelTracedModule(own(func), recorded)
    return ScriptFunction(func, recorded, traced=True)


def trace_module(
    mod: Any, inputs: dict[str, Any], *args: Any, example_inputs_is_kwarg: bool = False, **options: Any
) -> Any:
    """`trace` for several methods of a module.

    Args:
        mod: The module.
        inputs: Example inputs by the name of the method.

    Raises:
        AttributeError: The module is none, or has no such method.
    """
    if not _enabled:
        return mod
    if not isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    recorded = None
    for name, given in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        named = {**given} if example_inputs_is_kwarg else {}
        made = _recorded(method, () if example_inputs_is_kwarg else _as_tuple(given), named, None, mod)
        recorded = made if name == "forward" else recorded
    return TopLevelTracedModule(own(mod), recorded)


def _as_tuple(inputs: Any) -> tuple[Any, ...]:
    if inputs is None:
        return ()
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _recorded(
    func: Any, args: tuple[Any, ...], kwargs: Any, tolerance: float | None, root: Any = None
) -> Any:
    from taeda.fx._record import record
    from taeda.jit._traced import TracedGraph

    root = func if isinstance(func, nn.Module) else root
    name = type(root).__name__ if root is not None else getattr(func, "__name__", "function")
    done = record(func, args, kwargs, root=root, name=name)
    if done.module is None:
        warnings.warn(
            f"trace: {name} runs as it is, but its trace has no graph and cannot be saved without its source: "
            f"{done.failure}",
            _warning(),
            stacklevel=3,
        )
    elif tolerance is not None and not _agrees(done, args, kwargs, tolerance):
        warnings.warn(
            f"trace: the graph of {name} gives another result for the same inputs: it draws random numbers, or counts "
            "its calls",
            _warning(),
            stacklevel=3,
        )
    if done.module is not None:
        TracedGraph.take(done.module.graph, func, args, kwargs)
    return done.module


def _warning() -> type[Warning]:
    from taeda.jit import TracerWarning

    return TracerWarning


def _agrees(done: Any, args: tuple[Any, ...], kwargs: Any, tolerance: float) -> bool:
    from taeda.utils._pytree import tree_leaves

    with tensor.random.fork_rng(devices=[]), tensor.no_grad():
        again = tree_leaves(done.module(*args, **kwargs))
    first = tree_leaves(dict(done.result) if isinstance(done.result, dict) else done.result)
    return len(first) == len(again) and all(
        tensor.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        for a, b in zip(first, again, strict=True)
        if isinstance(a, tensor.Tensor) and a.is_floating_point()
    )
