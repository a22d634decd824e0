"""Graphs: programs as lists of nodes."""

from __future__ import annotations

import contextlib
import copy
import inspect
from typing import TYPE_CHECKING, Any

from taeda.fx._code import (
    CodeGen,
    PythonCode,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from taeda.fx._namespace import Namespace, snake_case
from taeda.fx.node import Argument as Argument
from taeda.fx.node import Node, map_arg
from taeda.fx.node import Target as Target
from taeda.utils import _pytree
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "CodeGen", "Graph", "PythonCode", "_PyTreeCodeGen", "_PyTreeInfo", "inplace_methods", "magic_methods",
    "reflectable_magic_methods",
]  # fmt: skip

_Namespace = Namespace
_snake_case = snake_case


class _node_list:
    """The nodes of a graph in order; nodes may be erased while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        end = self.graph._root
        node = getattr(end, self.direction)
        while node is not end:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """Where new nodes go while a block runs."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.graph._insert = self.orig_insert


class Graph:
    """A program as a list of nodes, from inputs to the output.

    Example:
        >>> graph = taeda.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(taeda.relu, (x,))
        >>> graph.output(y)
        output
        >>> taeda.fx.GraphModule({}, graph)(taeda.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The graph module that runs it; None where there is none."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target where that is given."""
        if op == "call_function" and target is None:
            raise AssertionError("target must be provided for call_function")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node that gives the result."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError("the graph has no output yet")
        return node

    # --- new nodes ---

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node and put it where new nodes go: at the end, or where `inserting_before` says.

        Raises:
            ValueError: The target is not of the kind that `op` asks for.
        """
        args, kwargs = args or (), kwargs or {}
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        named = self._graph_namespace.create_name(candidate, None)
        node = Node(self, named, op, target, args, kwargs, type_expr)
        if self.owning_module is not None:
            for hook in getattr(self.owning_module, "_create_node_hooks", ()):
                hook(node)
        self._graph_namespace.associate_name_with_obj(named, node)
        self._insert(node)
        self._len += 1
        return node

    def process_inputs(self, *args: Any) -> Any:
        """The arguments as the graph's inputs take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result as callers get it."""
        return self._codegen.process_outputs(out)

    def _target_to_str(self, target: Any) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """An input.

        Args:
            name: Name of the argument; with one or two stars in front it takes all others.
            type_expr: Its type, for the code that is printed.
            default_value: What it is where it is not given.
        """
        given = default_value is not inspect.Signature.empty
        return self.create_node("placeholder", name, (default_value,) if given else (), type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """The value of an attribute, such as "layer1.weight"."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """The result of a submodule."""
        if self.owning_module is not None and _submodule(self.owning_module, module_name) is None:
            import warnings

            warnings.warn(
                f"Attempted to insert a call_module Node with no underlying reference in the owning GraphModule: "
                f"{module_name!r}! Call GraphModule.add_submodule to add it.",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """The result of a method of `args[0]`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """The result of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """The result of the graph."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node, of this graph or another.

        Args:
            node: The node.
            arg_transform: Gives, for nodes among its arguments, those of this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of another graph here.

        Args:
            g: The other graph.
            val_map: Nodes of the other graph and what stands for them here; filled with the copies.
            return_output_node: Give the other graph's output node besides.

        Returns:
            What the other graph's output gives, in nodes of this one; None where it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        found = made.graph_copy(self, copies, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            result, old = found
            made.output(result, type_expr=old.type).meta = copy.copy(old.meta)
            copies[old] = made.output_node()
        memo.update({id(old): new for old, new in copies.items()})
        return made

    # --- where they go, and how they go ---

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes stand before `n`, in a `with` block or from now on; None is the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes stand after `n`, in a `with` block or from now on; None is the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses.

        Raises:
            RuntimeError: It is used.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            import warnings

            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove every node whose result nobody uses and that has no other effect; whether there was one.

        Example:
            >>> graph.eliminate_dead_code()
            True
        """
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Check that the graph is one: names are given once, arguments come before their users, targets exist.

        Raises:
            RuntimeError: It is not.
        """
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph.")
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that "
                        "Nodes in the graph are topologically ordered\n" + str(self)
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen[node] = None
            names.add(node.name)
            self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        if node.op == "call_function":
            if not callable(node.target):
                raise ValueError(f"Node {node} target {node.target} is not callable")
        elif not isinstance(node.target, str):
            raise ValueError(f"Node {node} target {node.target} is not a str")
        if self.owning_module is None or node.op not in ("get_attr", "call_module"):
            return
        here = self.owning_module
        for part in node.target.split("."):
            if not hasattr(here, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part}"
                )
            here = getattr(here, part)
        if node.op == "call_module" and not isinstance(here, nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")

    # --- as text ---

    def python_code(
        self, root_module: str, *, verbose: bool = False, described: bool = False, **_: Any
    ) -> PythonCode:
        """The graph as the source of a function.

        Args:
            root_module: Name of the variable through which modules and attributes are reached, "self" mostly.
            verbose: Write where the program called each node.
            described: Write dtypes and shapes of what nodes give, and before nodes the lines that they come from.
        """
        namespace = Namespace()

        def named(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = named
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose, described)
        finally:
            for node, shown in before.items():
                node._repr_fn = shown

    def __str__(self) -> str:
        result = [""]
        lines = [node.format_node(maybe_return_typename=result) for node in self.nodes]
        return f"graph(){result[0]}:" + "".join(f"\n    {line}" for line in lines)

    def print_tabular(self) -> None:
        """Print the nodes as a table.

        Raises:
            ImportError: The package tabulate is not installed.
        """
        try:
            from tabulate import tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # --- how it is written ---

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another writer make the source."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Change the lines of the source that is made.

        Args:
            make_transformer: Gets the function so far (or None), gives one from list of lines to list of lines.

        Returns:
            A context; at its end the function so far is back.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_the_end() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_the_end()

    def flatten_inps(self, *args: Any) -> Any:
        """The leaves of arguments that are containers."""
        return _pytree.tree_leaves(args)

    def unflatten_outs(self, out: Any) -> Any:
        """The result as callers get it."""
        return self.process_outputs(out)


def _submodule(root: Any, name: str) -> Any:
    for part in name.split("."):
        root = getattr(root, part, None)
    return root if isinstance(root, nn.Module) else None
