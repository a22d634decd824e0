"""What programs ask a compiler of Python code that is not there."""

from __future__ import annotations

from taeda import _absent
from taeda.compiler import (
    _Config,
    _itself,
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
    "export", "forbid_in_graph", "graph_break",
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "optimize", "optimize_assert", "reset",
    "run",
]  # fmt: skip

config = _Config(
    "taeda._dynamo.config",
    cache_size_limit=8,
    recompile_limit=8,
    suppress_errors=False,
    verbose=False,
    capture_scalar_outputs=False,
)
export = _absent.function("taeda._dynamo.export", "there is no compiler of Python programs")
disallow_in_graph = forbid_in_graph = allow_in_graph
run = _itself


def optimize(*args: Any, **kwargs: Any) -> Any:
    """A decorator that gives the function itself; of a module it makes one that calls it."""
    return _itself if kwargs.get("disable") else compile


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


_MODULES = frozenset({"_trace_wrapped_higher_order_op", "eval_frame", "utils"})


def __getattr__(name: str) -> Any:
    if name == "OptimizedModule":
        from taeda._dynamo.eval_frame import OptimizedModule

        return OptimizedModule
    if name in _MODULES:
        from importlib import import_module

        return import_module(f"taeda._dynamo.{name}")
    raise AttributeError(f"module 'taeda._dynamo' has no attribute {name!r}")
