"""Runs graphs step by step, so that a derived class can look at, or change, each of them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from taeda.fx._symbolic_trace import Tracer
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, map_arg
from taeda.fx.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taeda.nn import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph.

    Args:
        module: The module whose members the graph uses.
        garbage_collect_values: Give values free behind their last use.
        graph: The graph, if it is not `module.graph`.

    A derived class changes `run_node`, or what a kind of node does: `call_function(target, args, kwargs)` and so on.

    Example:
        >>> class Loud(taeda.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         print(target.__name__)
        ...         return super().call_function(target, args, kwargs)
        >>> Loud(taeda.fx.symbolic_trace(lambda x: taeda.relu(x))).run(taeda.ones(1))
        relu
        tensor([1.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """Run the graph.

        Args:
            args: The inputs, by position.
            initial_env: Values of nodes that are known already.
            enable_io_processing: Let the graph's code generator change inputs and outputs as its function does.
        """
        self.env = dict(initial_env or {})
        given = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter = iter(given)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with a list of inputs, which is emptied, so that inputs can be given free."""
        given = list(args_list)
        args_list.clear()
        return self.run(*given, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next input, or its default.

        Raises:
            RuntimeError: There is neither.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A member of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        own, *rest = args
        return getattr(own, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The member of a dotted name.

        Raises:
            RuntimeError: There is none.
        """
        found: Any = self.module
        for count, part in enumerate(target.split("."), 1):
            if not hasattr(found, part):
                path = ".".join(target.split(".")[:count])
                raise RuntimeError(f"Node referenced nonexistent target {path}; full name {target}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """A node's arguments with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), dict(self.map_nodes_to_values(n.kwargs, n))

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """`args` with values in the place of nodes."""

        def value(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose"
                )
            return self.env[used]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Makes a new graph by running an old one with proxies; a derived class changes steps on the way.

    Example:
        >>> class Softer(taeda.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(taeda.sigmoid if target is taeda.relu else target, args, kwargs)
        >>> Softer(taeda.fx.symbolic_trace(lambda x: taeda.relu(x))).transform()(taeda.zeros(1))
        tensor([0.5])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class OverAll(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs = {}

            def is_leaf_module(self, _m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = OverAll(self.new_graph)
        self.tracer.root = module

    def run_node(self, n: Node) -> Any:
        """The proxy of a node; what the node notes on its place in the program goes to the new ones."""
        before = self.new_graph._root.prev
        result = super().run_node(n)
        made = before.next
        while made.op != "root":
            for name in ("stack_trace", "nn_module_stack"):
                if n.meta.get(name) is not None:
                    made.meta.setdefault(name, n.meta[name])
            made = made.next
        return result

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """A new input of the same name."""
        default = args[0] if args else inspect.Parameter.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """A new step that reads the member."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A new step that calls the module."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A new step that calls the function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module made of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()

            def node(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            from taeda.fx.node import map_aggregate

            made = self.new_graph.output(map_aggregate(result, node))
            for name, value in old.meta.items():
                made.meta.setdefault(name, value)
        return GraphModule(self.module, self.new_graph)
