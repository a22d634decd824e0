"""Graphs of functions by running them, operator by operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """The mode in force: None."""
    return


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., Any]:
    """A function that runs `f` once on its arguments and gives the graph module of the operators that `f` called.

    Sizes are numbers in the graph; with "symbolic" sizes that are other numbers for other inputs are computed there.
    `node.meta["val"]` tells as a fake tensor what each node gives.

    Args:
        f: The function.
        decomposition_table: Functions that stand for operators, by overload: what they call is in the graph.
        tracing_mode: "real", "fake" or "symbolic".

    All other arguments are accepted and not read.

    Raises:
        ValueError: Another tracing mode.
        RuntimeError: From the result, where what `f` did cannot stand in a graph.

    Example:
        >>> print(make_fx(lambda x: taeda.relu(x) + 1)(taeda.ones(2)).code.strip())
        def forward(self, x_1):
            relu = torch.ops.aten.relu.default(x_1);  x_1 = None
            add = torch.ops.aten.add.Tensor(relu, 1);  relu = None
            return add
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ValueError(f"Unexpected tracing type: {tracing_mode}")
    if tracing_mode == "symbolic":
        from taeda import export

        return export.with_sizes(f, decomposition_table, pre_dispatch)

    def run(*args: Any) -> Any:
        from taeda.fx._operators_record import recorded

        return recorded(f, args, decomposition_table)

    return run
