"""`explain`: what a compiler would have made of a function, which here runs as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taeda.overrides import TorchFunctionMode, is_tensor_method_or_property


@dataclass
class ExplainOutput:
    """What `explain` found: a function that nobody compiles is one graph without breaks."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[Any]
    op_count: int
    ops_per_graph: list[list[Any]] | None = None
    out_guards: list[Any] | None = field(default_factory=list)
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for place, called in enumerate(self.ops_per_graph or (), start=1):
            lines += ["Ops per Graph:"] * (place == 1) + [
                f"  Ops {place}:",
                *(f"    {one}" for one in called),
            ]
        return "\n".join(lines) + "\n"


class _Calls(TorchFunctionMode):
    """Keeps the functions that a program calls."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found.append(func)
        return func(*args, **(kwargs or {}))


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Call a function and tell what a compiler would: nothing is compiled, so it is one graph without breaks.

    Args:
        f: A function or module.
        *extra_args: Its arguments; without any, a function that takes them is returned.
        **extra_kwargs: Its arguments by name.

    Returns:
        An object with `graph_count`, `graph_break_count`, `op_count` and `ops_per_graph`, the functions that were
        called; or, without arguments, a function of the arguments that returns it.

    Example:
        >>> taeda._dynamo.explain(lambda x: taeda.relu(x) + 1)(taeda.ones(2)).graph_break_count
        0
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        with _Calls() as calls:
            f(*args, **kwargs)
        graphs = 1 if calls.found else 0
        count = sum(map(_is_function, calls.found))
        return ExplainOutput([], graphs, 0, [], count, [calls.found][:graphs])

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def _is_function(called: Any) -> bool:
    """Whether a graph has a call of a function for it, not of a method: operators such as `+` are functions."""
    from taeda._dynamo._follow import _SYMBOLS

    return not is_tensor_method_or_property(called) or called.__name__ in _SYMBOLS


class ExplainWithBackend:
    """A compiler for `compile` that tells what it was given, and leaves the work to another one.

    Args:
        backend: The other one, or its name.

    Attributes:
        graphs: The graphs that came.
        op_count: How many calls stand in them.
        break_reasons: Empty: there are no breaks.

    Example:
        >>> told = ExplainWithBackend("eager")
        >>> taeda.compile(lambda x: taeda.relu(x) + 1, backend=told)(taeda.ones(2))
        tensor([2., 2.])
        >>> told.output().op_count
        2
    """

    def __init__(self, backend: Any) -> None:
        from taeda._dynamo import lookup_backend

        self.backend = lookup_backend(backend)
        self.graphs: list[Any] = []
        self.op_count = 0
        self.break_reasons: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        self.op_count += sum(node.op.startswith("call") for node in gm.graph.nodes)
        return self.backend(gm, example_inputs)

    def output(self) -> ExplainOutput:
        """What came so far."""
        count = len(self.graphs)
        return ExplainOutput(self.graphs, count, max(count - 1, 0), self.break_reasons, self.op_count)
