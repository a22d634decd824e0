"""What programs ask a compiler of Python code that is not there."""

from __future__ import annotations

from taeda._dynamo.eval_frame import is_dynamo_supported
from taeda.compiler import (
    _Config,
    _itself,
    _settings,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
    "error_on_graph_break", "explain", "export", "forbid_in_graph", "graph_break",
    "is_compiling", "is_dynamo_supported", "list_backends", "lookup_backend", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "optimize", "optimize_assert", "register_backend", "reset", "run",
    "substitute_in_graph",
]  # fmt: skip

config = _Config("taeda._dynamo.config", **_settings.DYNAMO)
disallow_in_graph = forbid_in_graph = nonstrict_trace = allow_in_graph
run = _itself


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **_: Any) -> Any:
    """A decorator: `compile` with this backend.

    Args:
        backend: A function of a graph module and a list of tensors, or a name. nopython: `fullgraph` of `compile`.
        disable: Whether functions and modules are given back as they are.
    """
    return _itself if disable else lambda function: compile(function, backend=backend, fullgraph=nopython)


def optimize_assert(backend: Any = "inductor", **options: Any) -> Any:
    """`optimize` of functions that must have a single graph."""
    return optimize(backend, nopython=True, **options)


def reset_code_caches() -> None:
    """Forget what was compiled: nothing is kept by code."""


def graph_break(msg: str = "") -> None:
    """Mark of a place where compiling ends; nothing happens."""


def lookup_backend(compiler_fn: Any) -> Any:
    """The function that compiles, under its name or itself.

    Raises:
        InvalidBackend: Nobody has registered the name.
    """
    from taeda._dynamo._compiled import known_backend

    found = known_backend(compiler_fn)
    return _run_graph if found is None else found


def _run_graph(gm: Any, example_inputs: Any, **options: Any) -> Any:
    return gm.forward


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Let a name stand for a function that compiles; also as a decorator.

    Args:
        compiler_fn: A function of a graph module and a list of tensors that gives a function of these.
        name: The name; the function's own where none is given.
        tags: Accepted.

    Example:
        >>> @taeda._dynamo.register_backend
        ... def counting(gm, example_inputs):
        ...     return gm.forward
        >>> taeda.compile(taeda.relu, backend="counting")(taeda.ones(1))
        tensor([1.])
    """
    from taeda._dynamo._compiled import REGISTERED

    if compiler_fn is None:
        return lambda function: register_backend(function, name, tags)
    REGISTERED[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Mark of a dimension whose size changes; nothing happens."""


def mark_static(t: Any, index: Any = None) -> None:
    """Mark of a dimension whose size stays; nothing happens."""


maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Mark of a tensor that stays where it is; nothing happens."""


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """Decorator for a function in the place of another one while compiling, which never happens."""
    return _itself


def leaf_function(fn: Any = None, *, mutates_args: Any = None) -> Any:
    """Mark of a function that a compiler leaves as it is, as all are here.

    What it gives has `register_fake`, a decorator of the function that stands for it while compiling: never called.
    """
    if fn is None:
        return lambda function: leaf_function(function, mutates_args=mutates_args)
    import functools

    @functools.wraps(fn)
    def leaf(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    leaf.register_fake = _itself  # type: ignore[attr-defined]
    return leaf


def error_on_graph_break(error: bool) -> Any:
    """Context in which breaks of graphs would be errors: there are none."""
    from contextlib import nullcontext

    return nullcontext()


_MODULES = frozenset({
    "_compiled", "_follow", "_trace_wrapped_higher_order_op", "backends", "decorators", "eval_frame", "exc", "testing",
    "external_utils", "utils",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "OptimizedModule":
        from taeda._dynamo.eval_frame import OptimizedModule

        return OptimizedModule
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"taeda._dynamo.{name}")
    if name in ("ExportResult", "export"):
        from taeda._dynamo import _export

        return getattr(_export, name)
    if name in ("ExplainOutput", "explain"):
        from taeda._dynamo import _explain

        return getattr(_explain, name)
    raise AttributeError(f"module 'taeda._dynamo' has no attribute {name!r}")
