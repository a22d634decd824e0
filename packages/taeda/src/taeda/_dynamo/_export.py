"""`export`: the graph of what a function calls, as older programs ask for it before `taeda.export.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda._dynamo import exc
from taeda.fx._operators_record import recorded
from taeda.fx._record import record
from taeda.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx.graph_module import GraphModule


class ExportResult(NamedTuple):
    """What `export` gives: the graph module, and the guards that it holds under, of which there are none."""

    graph_module: GraphModule
    guards: set[Any]


def export(
    f: Callable[..., Any],
    *extra_args: Any,
    aten_graph: bool = False,
    decomposition_table: Any = None,
    pre_dispatch: bool = False,
    tracing_mode: str = "symbolic",
    dynamic_shapes: Any = None,
    specialize_float: bool = True,
    assume_static_by_default: bool = False,
    same_signature: bool = True,
    disable_constraint_solver: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    **extra_kwargs: Any,
) -> Any:
    """A function that runs `f` once on its arguments and gives the graph module of what it called.

    Args:
        f: A function or module.
        *extra_args: Its arguments; with them the result is given at once.
        aten_graph: Operators stand in the graph, else public functions, and the sizes that the function reads.
        decomposition_table: With `aten_graph`, functions that stand for operators.
        **extra_kwargs: Its arguments by name.

    All other arguments are accepted and not read.

    Raises:
        Unsupported: From the result, where what `f` did cannot stand in a graph.

    Example:
        >>> net, guards = taeda._dynamo.export(lambda x: taeda.relu(x) + 1)(taeda.ones(2))
        >>> [node.name for node in net.graph.nodes]
        ['x', 'relu', 'add', 'output']
    """
    root = f if isinstance(f, nn.Module) else getattr(f, "__self__", None)

    def inner(*args: Any, **kwargs: Any) -> ExportResult:
        if aten_graph:
            program = (lambda *given: f(*given, **kwargs)) if kwargs else f
            return ExportResult(recorded(program, args, decomposition_table), set())
        owner = root if isinstance(root, nn.Module) else None
        try:
            done = record(f, args, kwargs, root=owner, keep_class=True, data_dependent=False)
        except GuardOnDataDependentSymNode as error:
            raise exc.Unsupported(f"export: {f!r} has no single graph: {error}") from error
        if done.module is None:
            raise exc.Unsupported(f"export: {f!r} has no single graph: {done.failure}")
        return ExportResult(done.module, set())

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
