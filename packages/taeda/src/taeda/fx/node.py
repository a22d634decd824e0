"""Nodes: the single steps of a graph."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _checks
from taeda.fx._names import qualified_name, type_text
from taeda.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

F = TypeVar("F")
Target = Any
Argument = Any
BaseArgumentTypes = Any
base_types = (str, int, float, bool, complex)

_legal_ops = {
    "placeholder": "an input",
    "call_method": "a method of the first argument",
    "call_module": "a submodule",
    "call_function": "a function",
    "get_attr": "a parameter, buffer or other attribute",
    "output": "the result",
    "root": "the ends of the list of nodes",
}
_side_effectful_functions: set[Any] = {_checks._assert, setattr, operator.setitem}
#: Functions of PyTorch's inside that change what follows, by name.
_changing = frozenset(
    {
        *("_record_function_enter", "_record_function_enter_new", "_record_function_exit"),
        *("_set_grad_enabled", "_enter_autocast", "_exit_autocast"),
    }
)
#: Functions that draw numbers, by name.
drawing = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
        *("normal", "poisson", "bernoulli", "multinomial"),
    }
)


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The dotted name by which a function can be reached, in the module that it says that it is from."""
    name = qualified_name(func)
    return f"_{name}" if name.startswith("operator.") else name


_type_repr = type_text


def has_side_effect(fn: F) -> F:
    """Mark a function whose calls stay in a graph though nobody uses their results; gives the function."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every item of its lists, tuples, dicts and slices replaced by what `fn` makes of it.

    Lists and dicts come back as ones that cannot be changed.
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(item, fn) for item in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`a` with every node in it replaced by what `fn` makes of it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(item) for index, item in enumerate(arg) if index < max_list_len)
        more = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{more}]"
        return f"({items}{more}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def writes(target: Any) -> bool:
    """Whether a target is an operator that writes into an argument."""
    schema = getattr(target, "_schema", None)
    if schema is not None and not isinstance(schema, str):
        return bool(schema.is_mutable)
    arguments = getattr(target, "arguments", None)
    return isinstance(arguments, tuple) and any(getattr(one, "written", False) for one in arguments)


class Node:
    """One step of a graph.

    Args:
        graph: The graph it belongs to.
        name: Its name, which no other node of the graph has.
        op: "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target: What it calls or reads: a function, or the name of a method, module, attribute or input.
        args: Positional arguments; nodes in them, also inside containers, stand for their results.
        kwargs: Arguments by name.
        return_type: The type of its result, for the code that is printed.

    Attributes:
        users: The nodes that use its result, as keys of a dict.
        meta: Notes of whoever works on the graph; copied along with the node.
    """

    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op {op!r} of node {name} is none of {sorted(_legal_ops)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a "
                    "Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a str "
                "is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._set_arguments(args, kwargs)

    def __deepcopy__(self, memo: Any = None) -> Node:
        return self if memo is None else memo.get(id(self), self)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    def __lt__(self, other: Node) -> bool:
        return self._position() < other._position()

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return other <= self

    def _position(self) -> int:
        return next(index for index, node in enumerate(self.graph.nodes) if node is self)

    # --- the list that it is part of ---

    @property
    def next(self) -> Node:
        """The node after this."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Put a node of the same graph directly before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Put a node of the same graph directly after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # --- what it uses and who uses it ---

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by name; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._set_arguments(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """Every node among the arguments, each once."""
        return list(self._input_nodes)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def note(item: Any) -> Any:
            if isinstance(item, Node):
                self._input_nodes.setdefault(item)
                item.users.setdefault(self)
            return item

        self._args, self._kwargs = map_aggregate(tuple(args), note), map_aggregate(dict(kwargs), note)

    _update_args_kwargs = _set_arguments

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use another one.

        Args:
            replace_with: The other node.
            delete_user_cb: Says of each user whether it changes.
            propagate_meta: Give the other node, which must have none, this node's notes.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Let this node use `new_input` wherever it used `old_input`."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)
        self._set_arguments(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it has effects beside its result, so that it stays though nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions or writes(self.target):
                return True
            name = getattr(self.target, "__name__", "").partition(".")[0]
            return name in _changing or (impure_random and name in drawing)
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    # --- texts ---

    @property
    def stack_trace(self) -> str | None:
        """Where the program called it, if that was recorded."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"
        return qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as one line of text."""
        if self.op == "placeholder":
            kind = f"{type_text(self.type)} " if self.type else ""
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target} : {kind}" if kind else self.target)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            start = f"%{self.name} : {kind}[num_users={len(self.users)}]"
            return f"{start} = {self.op}[target={self.target}]{default}"
        kind = f"{type_text(self.type)} " if self.type else ""
        start = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "get_attr":
            return f"{start}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"{start}[target={self._pretty_print_target(self.target)}](args = {_format_arg(self.args)}, "
            f"kwargs = {_format_arg(self.kwargs)})"
        )

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments in the form (args, kwargs) that the signature gives them; None where it is not known."""
        from taeda.fx import operator_schemas

        if self.op == "call_function":
            return operator_schemas.normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return operator_schemas.normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None
