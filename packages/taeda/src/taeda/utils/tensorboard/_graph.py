"""What one call of a module did, as the graph that an event file holds.

The format is TensorBoard's `graph.proto`; a node's name is its place in the tree that is drawn:
https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto
"""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from taeda._training_modes import in_mode
from taeda.jit import _graphs
from taeda.utils._pytree import tree_leaves
from taeda_registry.slots import nn, tensor

__all__ = ["graph"]


def _scopes(model: Any) -> tuple[dict[Any, str], dict[str, str]]:
    """What each module adds to the names of what is called in it, and the whole of that by the module's path."""
    added = {model: type(model).__name__}
    whole = {"": added[model]}
    for path, module in model.named_modules():
        if path:
            parent, _, name = path.rpartition(".")
            added[module] = f"{type(module).__name__}[{name}]"
            whole[path] = f"{whole[parent]}/{added[module]}"
    return added, whole


def _shape(value: _graphs.Value) -> AttrValue:
    sizes = value.type().sizes()  # type: ignore[attr-defined]
    dims = [TensorShapeProto.Dim(size=size) for size in sizes]
    return AttrValue(list=AttrValue.ListValue(shape=[TensorShapeProto(dim=dims)]))


def _node(name: str, kind: str, inputs: list[str], value: _graphs.Value | None, text: str = "") -> NodeDef:
    facts = {"attr": AttrValue(s=text.encode())}
    if value is not None and value.isCompleteTensor():
        facts["_output_shapes"] = _shape(value)
    return NodeDef(name=name, op=kind, input=inputs, attr=facts)


def graph(
    model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True
) -> tuple[GraphDef, RunMetadata]:
    """The graph of a call of a module, and an empty record of what it cost.

    Args:
        model: The module, which is called once, in evaluation.
        args: A tensor, or a tuple of its arguments.
        verbose: Print the graph.
        use_strict_trace: Of no effect: containers of results are always followed.

    Raises:
        TypeError: It is no module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"add_graph: expected a module, found {type(model).__name__}")
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    added, whole = _scopes(model)
    hooks = []
    for module, scope in added.items():
        hooks += [
            module.register_forward_pre_hook(
                lambda _module, _args, scope=scope: tensor.library.traces[-1].push_scope(scope)
            ),
            module.register_forward_hook(
                lambda _module, _args, _result: tensor.library.traces[-1].pop_scope(), always_call=True
            ),
        ]
    try:
        with tensor.no_grad(), in_mode(model, False):
            traced, _result = _graphs.trace_graph(model, args, {})
    finally:
        for hook in hooks:
            hook.remove()

    # Inputs stand in the order of the trace: the arguments' tensors, then those of the state, each once.
    labels: dict[int, str] = {}
    for count, item in enumerate(leaf for leaf in tree_leaves(args) if isinstance(leaf, tensor.Tensor)):
        labels.setdefault(id(item), f"input/input.{count + 1}")
    for path, item in model.state_dict(keep_vars=True).items():
        owner, _, name = path.rpartition(".")
        labels.setdefault(id(item), f"{whole[owner]}/{name}")
    places: dict[str, str] = {}
    nodes: list[NodeDef] = []

    def place_of(value: _graphs.Value, scope: str) -> str:
        """The node that gives a value; one of its own for what the module took from elsewhere."""
        name = value.debugName()
        if name not in places:
            places[name] = f"{scope}/outside_{name}"
            nodes.append(_node(places[name], "prim::Constant", [], value))
        return places[name]

    for value, label in zip(traced.inputs(), labels.values(), strict=False):
        places[value.debugName()] = label
        nodes.append(_node(label, "IO Node" if label.startswith("input/") else "Parameter", [], value))
    for item in traced.nodes():
        scope, kind = item.scopeName() or whole[""], item.kind()
        outputs = list(item.outputs())
        number = outputs[0].debugName() if outputs else str(len(nodes))
        name = f"{scope}/{kind.rpartition(':')[2]}_{number}"
        places |= {value.debugName(): name for value in outputs}
        text = f"{{ value : {outputs[0].toIValue()}}}" if kind == "prim::Constant" else "{}"
        taken = [place_of(value, scope) for value in item.inputs()]
        nodes.append(_node(name, kind, taken, outputs[0] if outputs else None, text))
    for count, value in enumerate(traced.outputs()):
        label = f"output/output.{count + 1}"
        nodes.append(_node(label, "IO Node", [place_of(value, whole[""])], value))
    cost = StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")])
    made = GraphDef(node=nodes, versions=VersionDef(producer=22))
    if verbose:
        print(made)
    return made, RunMetadata(step_stats=cost)
