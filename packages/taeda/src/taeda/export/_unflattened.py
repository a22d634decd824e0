"""Exported programs as modules of modules: what each module of the program did is a graph of its own."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

from taeda.fx import Graph, GraphModule
from taeda.fx.graph_module import _assign_attr
from taeda_registry.slots import nn

if TYPE_CHECKING:
    from taeda.fx.node import Node

__all__ = ["nested"]


def nested(program: GraphModule) -> GraphModule:
    """The program, where nodes of one module after another are calls of graph modules.

    A module that is called again has a graph module for each call, `inner` and `inner@1`.

    Args:
        program: A graph module of operators whose nodes tell their modules in `meta["nn_module_stack"]`.
    """
    nodes = [n for n in program.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    state = dict(program.named_parameters(remove_duplicate=False))
    state |= dict(program.named_buffers(remove_duplicate=False))
    top = _Module(state, "", nodes)
    top.take([node for node in program.graph.nodes if node.op == "placeholder"])
    top.run()
    (result,) = program.graph.find_nodes(op="output")
    top.copies[result] = top.graph.node_copy(result, top.value)
    top.graph.set_codegen(program.graph._codegen)
    made = top.made()
    made._in_spec, made._out_spec = program._in_spec, program._out_spec
    return made


def _stack(node: Node) -> list[str]:
    """Paths of the modules that a node is in; those of what uses it where it comes from none."""
    if (stack := node.meta.get("nn_module_stack")) is not None:
        return list(stack)
    return next((_stack(user) for user in node.users if user.op != "output"), [""])


class _Module:
    """One graph module while it is made."""

    def __init__(self, state: dict[str, Any], path: str, nodes: list[Node]) -> None:
        self.state, self.path, self.nodes = state, path, nodes
        self.graph, self.holder = Graph(), nn.Module()
        self.copies: dict[Node, Node] = {}

    def _within(self, target: str) -> str | None:
        """The path of a tensor from here; None where it is of a module around this one."""
        start = f"{self.path}." if self.path else ""
        return target[len(start) :] if target.startswith(start) else None

    def take(self, inputs: list[Node]) -> None:
        """Placeholders for nodes from around."""
        for node in inputs:
            self.copies[node] = self.graph.placeholder(
                str(node.target) if node.op == "placeholder" else node.name
            )
            self.copies[node].meta = dict(node.meta)

    def value(self, node: Node) -> Node:
        """What stands here for a node of the program."""
        if node not in self.copies:
            path = self._within(str(node.target))
            _assign_attr(self.state[str(node.target)], self.holder, path)
            self.copies[node] = self.graph.get_attr(path)
            self.copies[node].meta = dict(node.meta)
        return self.copies[node]

    def around(self) -> list[Node]:
        """The nodes that are used here and come from around."""
        own = set(self.nodes)
        used = (part for node in self.nodes for part in node.all_input_nodes if part not in own)
        return list(
            dict.fromkeys(n for n in used if n.op != "get_attr" or self._within(str(n.target)) is None)
        )

    def handed_out(self) -> list[Node]:
        """The nodes that are used around."""
        own = set(self.nodes)
        return [node for node in self.nodes if any(user not in own for user in node.users)]

    def _child(self, node: Node) -> str | None:
        stack = _stack(node)
        place = stack.index(self.path) if self.path in stack else len(stack)
        return stack[place + 1] if place + 1 < len(stack) else None

    def run(self) -> None:
        """The nodes, with calls of modules in the place of what is in them."""
        for child, group in itertools.groupby(self.nodes, self._child):
            if child is None:
                for node in group:
                    self.copies[node] = self.graph.node_copy(node, self.value)
            else:
                self._call(child, list(group))

    def _call(self, path: str, nodes: list[Node]) -> None:
        inner = _Module(self.state, path, nodes)
        given, results = inner.around(), inner.handed_out()
        inner.take(given)
        inner.run()
        found = [inner.copies[node] for node in results]
        inner.graph.output(found[0] if len(found) == 1 else tuple(found))
        name = self._free(self._within(path) or path)
        _put(self.holder, name, inner.made())
        call = self.graph.call_module(name, tuple(self.value(node) for node in given))
        if len(results) == 1:
            self.copies[results[0]] = call
            call.meta = dict(results[0].meta)
            return
        for place, node in enumerate(results):
            self.copies[node] = self.graph.call_function(operator.getitem, (call, place))
            self.copies[node].meta = dict(node.meta)

    def _free(self, name: str) -> str:
        known = {path for path, part in self.holder.named_modules() if isinstance(part, GraphModule)}
        numbered = (f"{name}@{number}" for number in itertools.count(1))
        return next(n for n in itertools.chain((name,), numbered) if n not in known)

    def made(self) -> GraphModule:
        """The graph module."""
        return GraphModule(self.holder, self.graph, "GraphModule")


def _put(root: nn.Module, path: str, module: nn.Module) -> None:
    """Let a module stand at a path; what stands there already gives it its members."""
    *way, name = path.split(".")
    for part in way:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]  # type: ignore[assignment]
    for inner, child in (root._modules[name]._modules if name in root._modules else {}).items():
        module._modules.setdefault(inner, child)
    root.add_module(name, module)
