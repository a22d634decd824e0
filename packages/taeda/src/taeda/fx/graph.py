"""Graphs: the steps of a program in their order, to be read, changed and written as Python."""

from __future__ import annotations

import builtins
import contextlib
import copy
import inspect
import keyword
import re
from typing import TYPE_CHECKING, Any

from taeda.fx._codegen import CodeGen, PythonCode, inplace_methods, magic_methods, reflectable_magic_methods
from taeda.fx.node import Node, map_arg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.fx.graph_module import GraphModule
    from taeda.nn import Module

__all__ = [
    "CodeGen", "Graph", "PythonCode", "inplace_methods", "magic_methods", "reflectable_magic_methods",
]  # fmt: skip

_RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "inf", "nan", "NoneType", "torch", "device"})


class _Namespace:
    """Names of results: each is given once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A free name that is, or begins with, `candidate`."""
        stem = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        stem = f"_{stem}" if stem[0].isdigit() else stem
        match = re.match(r"(.*)_(\d+)$", stem)
        name = stem
        if match is not None:
            stem, number = match.group(1), int(match.group(2))
        else:
            number = 0
        if name in self._used or name in _RESERVED:
            number = max(number, self._next.get(stem, 0))
            while name in self._used or name in _RESERVED:
                number += 1
                name = f"{stem}_{number}"
            self._next[stem] = number
        self._used.add(name)
        return name


def _snake_case(text: str) -> str:
    """`BatchNorm2d` as `batch_norm2d`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()


class _Nodes:
    """The nodes of a graph in their order; the order may change while they are read."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph = graph
        self._backwards = backwards

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = self.graph._root
        while True:
            node = node._prev if self._backwards else node._next
            if node.op == "root":
                return
            if not node._erased:
                yield node

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.graph, not self._backwards)


class Graph:
    """The steps of a program: inputs first, then calls, then one output.

    Args:
        owning_module: The module that the graph belongs to.
        tracer_cls: The class of tracers that made it.
        tracer_extras: Further arguments of that class.

    Example:
        >>> graph = taeda.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(taeda.relu, (x,))
        >>> graph.output(y)
        output
        >>> taeda.fx.GraphModule({}, graph)(taeda.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> GraphModule | None:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: GraphModule | None) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _Nodes:
        """All nodes in their order; `reversed` gives them from the end."""
        return _Nodes(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, of one target if it is given, in their order."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """The node that gives the results."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    # Making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Put a new node at the place where nodes are put, at first the end."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("create_node: args must be a tuple and kwargs a dict")
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(candidate), op, target, args, kwargs, type_expr)
        self._check_own(node)
        self._insert(node)
        self._len += 1
        return node

    def _check_own(self, node: Node) -> None:
        for used in node.all_input_nodes:
            if used.graph is not self:
                raise RuntimeError(
                    f"create_node: argument {used.name!r} of {node.name!r} belongs to another graph"
                )

    def _target_to_str(self, target: Any) -> str:
        name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        if name.startswith("__") and name.endswith("__") and len(name) > 4:
            name = name[2:-2]
        return _snake_case(name.lstrip("*"))

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Parameter.empty
    ) -> Node:
        """An input of the program."""
        args = () if default_value is inspect.Parameter.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A member of the module: a parameter, a buffer, a tensor."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a module below the graph's own."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the program gives back: a node, or a container of nodes and values."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node; `arg_transform` says what stands here for the nodes it uses."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of `g`, but for its output, to this place.

        Args:
            g: The graph that is read.
            val_map: What stands here for which of its nodes; what is copied is entered.
            return_output_node: Give back (result, output node of `g`) in the place of the result.

        Returns:
            What the output of `g` gives, in terms of this graph; None if it has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        memo[id(self)] = made
        val_map: dict[Node, Node] = {}
        found = made.graph_copy(self, val_map, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        for old, new in val_map.items():
            memo[id(old)] = new
        if found is not None:
            result, old = found
            made.output(result, type_expr=old.type).meta = copy.copy(old.meta)
        return made

    # Changing

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out that nobody uses.

        Raises:
            RuntimeError: Others use it, or it belongs to another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._take((), {})

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager:
        """New nodes are put before `n`, or at the beginning; as a context, only inside."""
        if n is None:
            return self.inserting_after(self._root)
        self._check_place(n)
        return _Place(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager:
        """New nodes are put behind `n`, or at the end; as a context, only inside."""
        if n is None:
            return self.inserting_before(self._root)
        self._check_place(n)
        last = [n]

        def insert(node: Node) -> None:
            last[0].append(node)
            last[0] = node

        return _Place(self, insert)

    def _check_place(self, n: Node) -> None:
        if n.graph is not self:
            raise AssertionError(f"inserting: node {n.name!r} is not in this graph")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out what nobody uses and what writes to nothing; whether something was taken out."""
        self.lint()
        impure = (lambda node: node.is_impure()) if is_impure_node is None else is_impure_node
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    # Reading

    def lint(self) -> None:
        """Check that nodes are used behind where they stand, in one graph, and that their targets are there.

        Raises:
            RuntimeError: A node is used before it stands, or belongs elsewhere, or a name is taken twice.
            AssertionError: An input stands behind a call, or a target is no member of the module.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` "
                        "on node_copy() to remap values"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check "
                        "that Nodes in the graph are topologically ordered"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        module = self._owning_module
        if node.op in ("get_attr", "call_module"):
            if not isinstance(node.target, str):
                raise ValueError(
                    f"Node {node} target {node.target} has type {type(node.target)}, expected str"
                )
            if module is None:
                return
            found: Any = module
            for count, part in enumerate(node.target.split(".")):
                found = getattr(found, part, None)
                if found is None and not _is_reserved(module, node.target):
                    path = ".".join(node.target.split(".")[: count + 1])
                    raise RuntimeError(
                        f"Node {node} target {node.target} references nonexistent attribute {path} of the module"
                    )
            if node.op == "call_module" and not _is_module(found):
                raise RuntimeError(
                    f"Node {node} target {node.target} does not reference an nn.Module: {type(found).__name__}"
                )

    def on_generate_code(
        self, make_transformer: Callable[[Any], Any]
    ) -> contextlib.AbstractContextManager[None]:
        """Let a function change the lines of the source before they are compiled; as a context, only inside."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the source."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get of a call's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call gives of the output node's results."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, **_options: Any) -> PythonCode:
        """The graph as Python source, in which the module is called `root_module`."""
        return self._codegen.python_code(self.nodes, root_module)

    def print_tabular(self) -> None:
        """Print a line for each node: op, name, target, arguments."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        print(
            "\n".join(
                "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
            )
        )

    def __str__(self) -> str:
        returns = [""]
        lines = [f"    {node.format_node(None, returns)}" for node in self.nodes]
        return "\n".join([f"graph(){returns[0]}:", *lines])

    __repr__ = object.__repr__


class _Place(contextlib.AbstractContextManager):
    """Where nodes are put from now on, until the context is left."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph = graph
        self._before = graph._insert
        graph._insert = insert

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


def _is_reserved(module: Module, target: str) -> bool:
    """Whether a member is there as a name alone, as a parameter that is None."""
    *path, last = target.split(".")
    try:
        holder = module.get_submodule(".".join(path))
    except AttributeError:
        return False
    return hasattr(holder, last)


def _is_module(value: Any) -> bool:
    from taeda_registry.slots import nn

    return isinstance(value, nn.Module)
