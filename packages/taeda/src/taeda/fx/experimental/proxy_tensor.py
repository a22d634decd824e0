"""Graphs of functions by running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """The mode in force: None."""
    return


def make_fx(
    f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real", **_: Any
) -> Callable[..., Any]:
    """A function that runs `f` once on its arguments and gives the graph module of what `f` called.

    The graph's functions are taeda's public ones; PyTorch's are operators.

    Args:
        f: The function.
        decomposition_table: Accepted; nothing is taken apart.
        tracing_mode: Accepted; the function runs on the arguments themselves.

    Raises:
        RuntimeError: From the result, where what `f` did cannot stand in a graph.

    Example:
        >>> graph = make_fx(lambda x: taeda.relu(x) + 1)(taeda.ones(2)).graph
        >>> [node.name for node in graph.nodes]
        ['x', 'relu', 'add', 'output']
    """
    from taeda.fx._record import record
    from taeda_registry.slots import nn

    def run(*args: Any) -> Any:
        done = record(
            f, args, root=f if isinstance(f, nn.Module) else None, name=getattr(f, "__name__", "GraphModule")
        )
        if done.module is None:
            raise RuntimeError(f"make_fx: {done.failure}")
        return done.module

    return run
