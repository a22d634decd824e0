"""Exported programs as modules that hold what the graph of operators is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.export.graph_signature import InputKind, OutputKind
from taeda.fx._code import _PyTreeCodeGen, _PyTreeInfo
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _copy_attr, _has_attr
from taeda.fx.node import map_arg
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from taeda.export.graph_signature import ExportGraphSignature
    from taeda.fx.node import Node

_CHANGES = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION)
__all__ = ["CallSpec", "unlifted"]


class CallSpec(NamedTuple):
    """The containers of the arguments, and of the result."""

    in_spec: Any
    out_spec: Any


def unlifted(
    lifted: GraphModule, signature: ExportGraphSignature, state: Any, names: list[str], spec: Any
) -> GraphModule:
    """A module of the same graph that reads its tensors itself, and takes and gives containers.

    Args:
        lifted: The graph module of operators.
        signature: What its inputs are.
        state: A module with the tensors by their paths.
        names: Names of the arguments.
        spec: Has the containers, of all arguments in their order and of the result, as `in_spec` and `out_spec`.
    """
    graph, copies = Graph(), {}
    inputs: dict[Any, Node] = {}
    paths = {s.arg.name: s.target for s in signature.input_specs if s.kind != InputKind.USER_INPUT}
    for node in lifted.graph.nodes:
        if node.op == "placeholder" and (path := paths.get(node.name)) is not None:
            copies[node] = graph.get_attr(path)
            copies[node].meta = dict(node.meta)
            inputs[path] = node
        elif node.op == "placeholder":
            copies[node] = _input(graph, node)
            inputs[node.name] = node
        elif node.op == "output":
            values = list(node.args[0])
            for output in signature.output_specs:
                if output.kind in _CHANGES:
                    new = copies[values.pop(0)]
                    old = inputs[output.target]
                    graph.call_function(tensor.ops.aten.copy_.default, (copies[old], new))
            graph.output(map_arg(tuple(values), copies.__getitem__))
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    for path, module in lifted.named_children():
        state.add_module(path, module)
    made = GraphModule(state, graph, "GraphModule")
    for path, _ in [
        *state.named_parameters(remove_duplicate=False),
        *state.named_buffers(remove_duplicate=False),
    ]:
        if not _has_attr(made, path):
            _copy_attr(state, made, path)
    made.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, spec.in_spec, spec.out_spec)))
    made.recompile()
    return made


def _input(graph: Graph, node: Node) -> Node:
    made = graph.placeholder(node.target)
    made.meta = dict(node.meta)
    return made
