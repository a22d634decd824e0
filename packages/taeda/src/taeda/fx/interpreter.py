"""What runs graphs node by node."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from taeda.func import _vmap
from taeda.fx._symbolic_trace import Tracer
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, map_aggregate
from taeda.fx.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; derived classes change what single kinds of nodes do.

    Args:
        module: The module with the attributes that the graph names.
        garbage_collect_values: Let values go after their last use.
        graph: The graph; the module's own where it is not given.

    Example:
        >>> class Count(taeda.fx.Interpreter):
        ...     calls = 0
        ...     def call_function(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_function(target, args, kwargs)
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        self.args_iter: Iterator[Any] = iter(())
        if garbage_collect_values:
            last: dict[Node, Node] = {}
            for node in reversed(self.graph.nodes):
                for used in node._input_nodes:
                    if used not in last:
                        last[used] = node
                        self.user_to_last_uses.setdefault(node, []).append(used)

    @_vmap.restored()
    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """The result of the graph.

        Args:
            args: The inputs, in order.
            initial_env: Values of nodes that are known already.
            enable_io_processing: Let the graph's way of taking and giving containers apply.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}\n{node.stack_trace or ''}".rstrip())
                raise
            for gone in self.user_to_last_uses.get(node, ()):
                self.env.pop(gone, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """The result of the graph; the list is emptied, so that inputs go when they are no longer needed."""
        inputs = list(args_list)
        args_list.clear()
        return self.run(*inputs, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """The result of one node, whose arguments are known."""
        from taeda.fx import traceback as notes

        with notes.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input; all that are left for one with a star."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from error

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of an attribute."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        this, *rest = args
        return getattr(this, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a path.

        Raises:
            RuntimeError: There is none.
        """
        value = self.module
        parts = target.split(".")
        for count, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: count + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in the place of nodes."""

        def load(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return _filled(args, load)


def _filled(a: Any, load: Callable[[Node], Any]) -> Any:
    """Values, as they are, in the place of nodes, among plain lists and dicts, as functions expect them."""
    if isinstance(a, Node):
        return load(a)
    if isinstance(a, tuple):
        items = [_filled(item, load) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [_filled(item, load) for item in a]
    if isinstance(a, dict):
        return {key: _filled(value, load) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(*(_filled(item, load) for item in (a.start, a.stop, a.step)))
    return a


class Transformer(Interpreter):
    """Makes another graph module of one: methods get proxies and give what stands in the new graph.

    Args:
        module: The graph module.

    Example:
        >>> class Swap(taeda.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(taeda.relu if target is taeda.tanh else target, args, kwargs)
        >>> changed = Swap(taeda.fx.symbolic_trace(taeda.nn.Tanh())).transform()
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            """Puts nodes into the new graph."""

            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs: dict[Any, str] = {}

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An input of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that reads an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that calls a submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that calls a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph module."""
        from taeda.fx import traceback as notes

        with notes.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            old = self.graph.output_node()
            made = self.new_graph.output(map_aggregate(result, strip), old.type)
            made.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)
