"""Graphs of functions in operators, with sizes that are computed there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.export._as_module import unlifted
from taeda.export._dims import Dim
from taeda.export._guards import guards_of
from taeda.export._operators import in_operators
from taeda.export._program import state_of
from taeda.export._runs import CannotTrace
from taeda.fx._code import CodeGen
from taeda.fx._keeping import left_alone
from taeda.fx._operators_record import input_names
from taeda.fx._record import _names, record
from taeda.utils import _pytree
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_sizes"]


def with_sizes(f: Callable[..., Any], decompositions: Any, pre_dispatch: bool) -> Callable[..., Any]:
    """A function that gives the graph of what `f` does with its arguments, where sizes are computed; see `make_fx`."""

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
