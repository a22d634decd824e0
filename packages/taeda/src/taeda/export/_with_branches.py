"""Exported programs whose branches and loops are graphs of their own, in operators: one run, so sizes are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda.export import graph_signature as signature
from taeda.fx._operators_record import OperatorRecording, following_branches
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Collection

    from taeda.fx import GraphModule

__all__ = ["with_branches"]


def with_branches(
    program: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    constants: Collection[str],
    decompositions: Any,
) -> tuple[GraphModule, signature.ExportGraphSignature]:
    """The graph module of the operators that a program calls, and what its inputs and outputs are.

    Args:
        program: A module of a graph of public functions.
        args: The inputs that it runs with.
        kwargs: Those by name.
        constants: Paths of the tensors that are neither parameters nor buffers.
        decompositions: Functions that stand for operators, by overload.
    """
    recording = OperatorRecording(decompositions)
    specs = _held(program, constants, recording)
    leaves = _pytree.tree_leaves((*args, *kwargs.values()))
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    for name, leaf in zip(names, leaves, strict=True):
        node = recording.input(name, leaf)
        is_tensor = isinstance(leaf, tensor.Tensor)
        arg = (
            signature.TensorArgument(node.name) if is_tensor else signature.ConstantArgument(node.name, leaf)
        )
        specs.append(signature.InputSpec(signature.InputKind.USER_INPUT, arg, None))
    before = [(buffer, buffer.clone()) for buffer in program.buffers()]
    with tensor.no_grad(), following_branches(recording):
        outputs = _pytree.tree_leaves(program(*args, **kwargs))
    with tensor.no_grad():
        for buffer, value in before:
            if not tensor.equal(buffer, value):
                buffer.copy_(value)
    made = recording.finished(tuple(outputs), "GraphModule")
    return made, signature.ExportGraphSignature(specs, [_output(recording, value) for value in outputs])


def _held(
    program: Any, constants: Collection[str], recording: OperatorRecording
) -> list[signature.InputSpec]:
    """Inputs of what the program holds: parameters, then buffers, then constants."""
    kept = program.state_dict().keys()
    kinds = signature.InputKind
    found = [(kinds.PARAMETER, "p", path, value, None) for path, value in program.named_parameters()]
    buffers = list(program.named_buffers())
    found += [(kinds.BUFFER, "b", p, value, p in kept) for p, value in buffers if p not in constants]
    found += [(kinds.CONSTANT_TENSOR, "c", p, value, None) for p, value in buffers if p in constants]
    specs = []
    for kind, start, path, value, persistent in found:
        node = recording.input(f"{start}_{path.replace('.', '_')}", value)
        specs.append(signature.InputSpec(kind, signature.TensorArgument(node.name), path, persistent))
    return specs


def _output(recording: OperatorRecording, value: Any) -> signature.OutputSpec:
    node = recording.node_of(value) if isinstance(value, tensor.Tensor) else None
    arg: Any = signature.ConstantArgument("", value) if node is None else signature.TensorArgument(node.name)
    return signature.OutputSpec(signature.OutputKind.USER_OUTPUT, arg, None)
