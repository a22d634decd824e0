"""Scripts and traces of programs, which run as the Python that they are.

There is no compiler. `script` gives functions and modules behind classes of its own that call them and share
everything with them; `trace` runs a program once and keeps its graph, so that `save` can write it without its source.
What only marks code for the compiler gives the function itself. `load` also reads archives that PyTorch's `jit.save`
wrote: their programs are translated to Python (`_archives`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

from taeda import _absent
from taeda.futures import Future
from taeda.jit._files import load, save
from taeda.jit._modules import (
    CompilationUnit,
    Error,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
    freeze,
    optimize_for_inference,
    run_frozen_optimizations,
    trace,
    trace_module,
)
from taeda.jit._state import following
from taeda.jit._types import Attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "ScriptWarning", "TopLevelTracedModule", "TracedModule",
    "TracerWarning", "TracingCheckError", "annotate", "enable_onednn_fusion", "export", "export_opnames",
    "fork", "freeze", "fuser", "ignore",
    "interface", "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph", "load",
    "onednn_fusion_enabled", "optimize_for_inference",
    "optimized_execution", "run_frozen_optimizations", "save", "script", "script_if_tracing", "script_method",
    "set_fusion_strategy", "set_module",
    "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

T = TypeVar("T")
_REASON = "there is no compiler of Python programs; run the function or module itself"


#: Types of compiled programs.
TYPES = (
    "AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType IntType InterfaceType ListType "
    "NoneType NumberType OptionalType StringType TensorType TupleType UnionType"
)
for _name in TYPES.split():
    globals()[_name] = _absent.cls(
        f"taeda.{_name}", "functions are not compiled, so their types have no names"
    )

globals().update(
    _absent.functions(
        "taeda.jit",
        "export_opnames last_executed_optimized_graph",
        _REASON,
    )
)


class TracingCheckError(Exception):
    """A trace that does not repeat what the function did."""


class TracerWarning(Warning):
    """Warning of a tracer."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignore those that come from the library's own modules, but for this one."""
        import warnings

        warnings.filterwarnings("ignore", category=TracerWarning, module=r"taeda(?!\.jit)")


class ScriptWarning(Warning):
    """Warning of a compiler."""


def is_scripting() -> bool:
    """Whether this code is being compiled: False."""
    return False


def is_tracing() -> bool:
    """Whether this code is being run by `trace`, for the graph of it, or by what `trace` made."""
    from sys import modules

    if following:
        return True
    recorder, graphs = modules.get("taeda.fx._record"), modules.get("taeda.jit._graphs")
    return (recorder is not None and recorder.is_recording()) or (graphs is not None and graphs.is_tracing())


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: dict[str, Any] | None = None, strict: bool = True,
    _force_outplace: bool = False, return_inputs: bool = False, _return_inputs_states: bool = False,
) -> Any:  # fmt: skip
    """Run a function or module once and give the graph of the operators that it called, and its result.

    Its nodes have PyTorch's names of operators (`node.kind()`), their arguments and results know their shapes. Programs
    that count what a network costs read it. Operators that others consist of are not in it.

    Args:
        f: The function or module.
        args: Its arguments; one that is no tuple stands for itself.
        kwargs: Its arguments by name.
        return_inputs: Give the arguments too.

    Example:
        >>> graph, result = taeda.jit._get_trace_graph(taeda.nn.ReLU(), taeda.ones(2))
        >>> [node.kind() for node in graph.nodes()]
        ['aten::relu']
    """
    from taeda.jit._graphs import trace_graph

    given = args if _python_isinstance(args, tuple) else (args,)
    graph, result = trace_graph(f, given, kwargs or {})
    return (graph, result, given) if return_inputs or _return_inputs_states else (graph, result)


def script(
    obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """A class itself; a function or module as a `ScriptFunction` or `RecursiveScriptModule` that calls it.

    Raises:
        RuntimeError: A function names what there is not.
        NotSupportedError: It takes any number of arguments.
    """
    from types import FunctionType

    from taeda.jit._checks import check
    from taeda.jit._modules import own
    from taeda.jit._state import _enabled
    from taeda_registry.slots import nn

    if not _enabled:
        return obj
    check(obj)
    if _python_isinstance(obj, nn.Module) and not _python_isinstance(obj, ScriptModule):
        return RecursiveScriptModule(own(obj))
    return ScriptFunction(obj) if type(obj) is FunctionType else obj


def script_if_tracing(fn: T) -> T:
    """The function itself: nothing is traced."""
    return fn


_script_if_tracing = script_if_tracing


def script_method(fn: T, _rcb: Any = None) -> T:
    """The method itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark of a function that a compiler leaves to Python: the function itself, used with or without parentheses."""
    return drop if callable(drop) else _itself


def unused(fn: T) -> T:
    """Mark of a function that a compiler replaces by an error: the function itself."""
    return fn


def export(fn: T) -> T:
    """Mark of a method that a compiler takes too: the method itself."""
    return fn


def interface(obj: T) -> T:
    """Mark of a class that is an interface: the class itself."""
    return obj


def _itself(obj: T) -> T:
    return obj


_overload = _overload_method = _itself


def _unwrap_optional(x: T | None) -> T:
    """The value.

    Raises:
        AssertionError: It is None.
    """
    assert x is not None, "_unwrap_optional: the value is None"
    return x


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """`isinstance` that knows containers by what they contain, such as `List[int]`."""
    from taeda.jit._types import matches

    return matches(obj, target_type)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of `func(*args, **kwargs)`, which is called at once."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


_fork = fork


def wait(future: Future) -> Any:
    """The value of a future."""
    return future.wait()


_wait = wait


def set_module(obj: Any, mod: str) -> None:
    """Set `obj.__module__`."""
    if not _python_isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def _python_isinstance(obj: Any, cls: type) -> bool:
    return issubclass(type(obj), cls)


# --- settings of the compiler: none is there to read them ---


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block that runs as it would without."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block that runs as it would without."""
    yield


class strict_fusion:
    """A block that runs as it would without."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Nothing is fused; returns the strategy so far, an empty list."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Nothing is fused, so there is nothing to switch."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


del annotations  # of the future; programs ask for the module of that name without importing it
from taeda.jit import annotations as annotations  # noqa: E402
