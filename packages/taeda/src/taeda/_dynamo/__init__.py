"""What programs ask a compiler of Python code that is not there."""

from __future__ import annotations

from taeda import _absent
from taeda.compiler import (
    _Config,
    _itself,
    allow_in_graph,
    assume_constant_result,
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
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "optimize", "optimize_assert", "register_backend", "reset",
    "run", "substitute_in_graph",
]  # fmt: skip

config = _Config(
    "taeda._dynamo.config",
    cache_size_limit=8,
    recompile_limit=8,
    suppress_errors=False,
    verbose=False,
    capture_scalar_outputs=False,
)
#: Nothing is compiled, so no module is of this class.
OptimizedModule = _absent.cls("taeda._dynamo.OptimizedModule", "there is no compiler of Python programs")
export = _absent.function("taeda._dynamo.export", "there is no compiler of Python programs")
disallow_in_graph = forbid_in_graph = allow_in_graph
run = _itself


def optimize(*args: Any, **kwargs: Any) -> Any:
    """A decorator that gives the function itself."""
    return _itself


optimize_assert = optimize


def graph_break(msg: str = "") -> None:
    """Mark of a place where compiling ends; nothing happens."""


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Mark of a dimension whose size changes; nothing happens."""


def mark_static(t: Any, index: Any = None) -> None:
    """Mark of a dimension whose size stays; nothing happens."""


maybe_mark_dynamic = mark_dynamic


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Mark of a tensor that stays where it is; nothing happens."""


class _Explained:
    """What `explain` says: one graph for the whole, which runs as it is."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.graph_count, self.graph_break_count, self.op_count = 1, 0, 0
        self.break_reasons: list[Any] = []
        self.ops_per_graph: list[Any] = []
        self.out_guards: list[Any] = []
        self.compile_times = None

    def __str__(self) -> str:
        counts = self.graph_count, self.graph_break_count, self.op_count
        return "Graph Count: {}\nGraph Break Count: {}\nOp Count: {}".format(*counts)


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """A function of the arguments of `f`, which says that nothing breaks: nothing is compiled."""
    if extra_args or extra_kwargs:
        return _Explained()
    return lambda *args, **kwargs: _Explained()


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Decorator for a compiler of graphs, which is never asked."""
    return _itself if compiler_fn is None else compiler_fn


def substitute_in_graph(original_fn: Any, **options: Any) -> Any:
    """Decorator for a function in the place of another one while compiling, which never happens."""
    return _itself


def error_on_graph_break(error: bool) -> Any:
    """Context in which breaks of graphs would be errors: there are none."""
    from contextlib import nullcontext

    return nullcontext()


_MODULES = frozenset({
    "_trace_wrapped_higher_order_op", "backends", "decorators", "eval_frame", "exc", "external_utils", "utils",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"taeda._dynamo.{name}")
    raise AttributeError(f"module 'taeda._dynamo' has no attribute {name!r}")
