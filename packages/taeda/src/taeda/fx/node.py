"""Nodes of a graph: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from taeda import _checks
from taeda.fx._names import qualified_name
from taeda.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Target = Any
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex)

_OPS = frozenset({"placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root"})
# Functions whose calls are kept even where nobody uses the result.
_side_effectful_functions: set[Callable] = {_checks._assert, operator.setitem, print}


def has_side_effect(fn: Any) -> Any:
    """Mark of a function whose calls stay in a graph though nobody uses the result: the function itself."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every item of its lists, tuples, dicts and slices replaced by what `fn` makes of it."""
    if isinstance(a, tuple):
        items = (map_aggregate(item, fn) for item in a)
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(item, fn) for key, item in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every node in it replaced by what `fn` makes of it."""
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


class Node:
    """One step of a graph.

    Attributes:
        op: `placeholder` (an input of the program), `get_attr` (a parameter, buffer or tensor of the module),
            `call_function`, `call_method`, `call_module`, or `output`.
        target: The input's name, the dotted name of the attribute or module, the function, or the method's name.
        args, kwargs: The arguments; results of other steps stand there as their nodes.
        name: The name of the result, unique in its graph.
        users: The nodes that have this one among their arguments, as keys in the order in which they came.
        meta: What passes note about the node.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple,
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _OPS:
            raise AssertionError(f"Node: op must be one of {sorted(_OPS)}, found {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node {name!r}: the target of a call_function must be callable, found {type(target).__name__}"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node {name!r}: the target of a {op} must be a str, found {type(target).__name__}"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._take(args, kwargs)

    def _take(self, args: Any, kwargs: Any) -> None:
        """Put new arguments in the place of the old ones; those who were used hear of it."""
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def args(self) -> tuple:
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._take(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._take(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    @property
    def next(self) -> Node:
        """The node behind this one; behind the last stands the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first stands the graph's root."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """Where the step was written, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace positional argument `idx`."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put a positional argument before number `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError(f"insert_arg: idx must lie between 0 and {len(self._args)}, found {idx}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace, or add, an argument given by its name."""
        self.kwargs = {**self._kwargs, key: arg}

    def prepend(self, x: Node) -> None:
        """Move node `x` of the same graph to the place before this one."""
        if self.graph is not x.graph:
            raise AssertionError(f"prepend: {x.name!r} belongs to another graph")
        if self is x:
            return
        x._remove_from_list()
        x._prev, x._next = self._prev, self
        self._prev._next = x
        self._prev = x

    def append(self, x: Node) -> None:
        """Move node `x` of the same graph to the place behind this one."""
        if self is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let those who use this node use another one; returns those that were changed.

        Args:
            replace_with: What they use from now on.
            delete_user_cb: Whether a user is to be changed.
            propagate_meta: Give `meta` to the other node, whose own must be empty.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "replace_all_uses_with: propagate_meta, but the new node has meta of its own"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put one node in the place of another among the arguments."""

        def exchanged(node: Node) -> Node:
            return new_input if node is old_input else node

        self._take(map_arg(self._args, exchanged), map_arg(self._kwargs, exchanged))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step must stay though nobody uses its result: inputs, outputs, and what writes."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            return self.target in _side_effectful_functions or _writes(name)
        if self.op == "call_method":
            return _writes(self.target)
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return False

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str:
        """The line of the graph's printed text; the type of the result is put into the list given."""
        typename = f"{type_text(self.type)} " if self.type else ""
        head = f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self._args[0]}"
        args = ", ".join(map(_argument_text, self._args)) + ("," if len(self._args) == 1 else "")
        named = ", ".join(f"{key}: {_argument_text(item)}" for key, item in self._kwargs.items())
        target = self._pretty_print_target(self.target)
        return f"{head}[target={target}](args = ({args}), kwargs = {{{named}}})"

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = qualified_name(target)
        return name if "." in name or name != getattr(target, "__name__", None) else f"builtins.{name}"

    def __lt__(self, other: Node) -> bool:
        """Whether this node stands before another one of its graph."""
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    def __repr__(self) -> str:
        return self.name


def _writes(name: str) -> bool:
    """Whether an operator of this name writes to its first argument."""
    return name.endswith("_") and not name.endswith("__")


def _argument_text(a: Any) -> str:
    """An argument as graphs print it: nodes with a percent sign."""
    if isinstance(a, Node):
        return f"%{a.name}"
    if isinstance(a, tuple) and not hasattr(a, "_fields"):
        return f"({', '.join(map(_argument_text, a))}{',' if len(a) == 1 else ''})"
    if isinstance(a, list):
        return f"[{', '.join(map(_argument_text, a))}]"
    if isinstance(a, dict):
        return f"{{{', '.join(f'{key}: {_argument_text(item)}' for key, item in a.items())}}}"
    return str(a)


def type_text(kind: Any) -> str:
    """A type as programs write it."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, type) and not getattr(kind, "__args__", None):
        return kind.__qualname__ if kind.__module__ == "builtins" else qualified_name(kind)
    return repr(kind)
