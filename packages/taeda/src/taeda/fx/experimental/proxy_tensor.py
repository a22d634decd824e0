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
        return _with_sizes(f, decomposition_table, pre_dispatch)

    def run(*args: Any) -> Any:
        from taeda.fx._operators_record import recorded

        return recorded(f, args, decomposition_table)

    return run


def _with_sizes(f: Callable[..., Any], decompositions: Any, pre_dispatch: bool) -> Callable[..., Any]:
    from taeda.export import Dim
    from taeda.export._guards import guards_of
    from taeda.export._operators import in_operators
    from taeda.export._runs import CannotTrace
    from taeda.fx._keeping import left_alone
    from taeda.fx._record import _names, record
    from taeda_registry.slots import nn

    def run(*args: Any) -> Any:
        root = f if isinstance(f, nn.Module) else None
        with left_alone(f, args):
            done = record(f, args, root=root, name=getattr(f, "__name__", "GraphModule"))
        if done.module is None:
            raise RuntimeError(f"make_fx: {done.failure}")
        names = _names(getattr(f, "forward", f), args, {})
        guards = guards_of(names, args, {}, dict.fromkeys(names, Dim.AUTO))
        try:
            found = in_operators(
                done.module, args, {}, done.constants, guards, not pre_dispatch, decompositions
            )
        except CannotTrace:
            return done.module
        return _reading(found, done.module, args)

    return run


def _reading(found: Any, program: Any, args: tuple[Any, ...]) -> Any:
    """The graph of operators as a module that has the tensors of the program, with names as PyTorch gives them."""
    from taeda.export._as_module import unlifted
    from taeda.export._program import state_of
    from taeda.fx._code import CodeGen
    from taeda.fx._operators_record import input_names
    from taeda.utils import _pytree

    made = unlifted(found.module, found.signature, state_of(program, found.constants), found.names, found)
    inputs = [node for node in made.graph.nodes if node.op == "placeholder"]
    for node, name in zip(inputs, input_names(found.names, args), strict=True):
        node.target = node.name = name
    if all(map(_pytree.tree_is_leaf, args)) and found.out_spec.is_leaf():
        (output,) = made.graph.find_nodes(op="output")
        output.args = (output.args[0][0],)
        made.graph.set_codegen(CodeGen())
    made.recompile()
    return made
