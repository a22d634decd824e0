"""Graphs in one form: arguments by name with their defaults, and arithmetic by Python's operators."""

from __future__ import annotations

import operator
from typing import Any

import taeda
from taeda.fx.interpreter import Transformer
from taeda.fx.node import Node, map_arg
from taeda.fx.operator_schemas import ArgsKwargsPair, normalize_function, normalize_module
from taeda.fx.proxy import Proxy

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Fills in the defaults of calls of functions and submodules whose signature is known and fits.

    Args:
        module: The graph module.
        normalize_to_only_use_kwargs: Give all arguments by name.

    Example:
        >>> net = taeda.fx.symbolic_trace(lambda x: taeda.nn.functional.relu(x, True))
        >>> changed = NormalizeArgs(net).transform()
        >>> [node.kwargs for node in changed.graph.nodes if node.op == "call_function"]
        [{'input': x, 'inplace': True}]
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs
        self.node_map: dict[Proxy, Node] = {}

    def run_node(self, n: Node) -> Any:
        """The node of the new graph; those whose calls cannot be normalised stay as they are."""
        if n.op in ("call_function", "call_module"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            found = self._normalized(n, args, kwargs)
            args, kwargs = (args, kwargs) if found is None else found
            out = getattr(self, n.op)(n.target, args, kwargs)
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta = n.meta
            out.node.type = n.type
        return out

    def _normalized(self, n: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgsKwargsPair | None:
        only_kwargs = self.normalize_to_only_use_kwargs
        if n.op == "call_module":
            return normalize_module(self.module, str(n.target), args, kwargs, only_kwargs)
        given = (n.args, n.kwargs)
        types = map_arg(given, lambda arg: arg.meta.get("type", arg.type))
        known = not any(_missing(t, arg) for t, arg in zip(types[0], n.args, strict=True))
        try:
            return normalize_function(
                n.target, args, kwargs, *((types[0], types[1]) if known else (None, None)), only_kwargs
            )
        except RuntimeError:  # several signatures fit
            return None


def _missing(told: Any, arg: Any) -> bool:
    return isinstance(arg, Node) and told is None


#: Functions that Python has an operator for.
_OPERATORS = {
    taeda.add: operator.add,
    taeda.mul: operator.mul,
    taeda.sub: operator.sub,
    taeda.div: operator.truediv,
    taeda.floor_divide: operator.floordiv,
    taeda.remainder: operator.mod,
    taeda.eq: operator.eq,
    taeda.ne: operator.ne,
    taeda.lt: operator.lt,
    taeda.le: operator.le,
    taeda.gt: operator.gt,
    taeda.ge: operator.ge,
}


class NormalizeOperators(Transformer):
    """Calls Python's operators in place of the functions that compute the same.

    Example:
        >>> net = taeda.fx.symbolic_trace(lambda x: taeda.add(x, 1))
        >>> [node.target for node in NormalizeOperators(net).transform().graph.nodes][1]
        <built-in function add>
    """

    binary_magic_method_remap = _OPERATORS

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call; one with options, which operators do not have, stays."""
        if len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap.get(target, target)
        return super().call_function(target, args, kwargs)
