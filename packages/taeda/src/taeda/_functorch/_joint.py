"""Forward and backward graphs of a function, for a compiler of each.

The function runs once on copies of its arguments while its operators, and those of its gradients, are recorded. What
the backward part reads of the forward part is handed from one graph to the other.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.fx._operators_record import OperatorRecording, following_branches
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.fx.passes.shape_prop import _extract_tensor_metadata
from taeda.utils import _pytree
from taeda_registry.slots import autograd, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JointFunction", "is_primal", "is_tangent", "parted"]


class _Recorded(NamedTuple):
    """One recording of a function.

    Attributes:
        recording: The graph of both parts.
        last: The last node of the forward part.
        outputs: Leaves of the result.
        spec: How they make the result.
        wanted: Places of the outputs that have gradients.
        tracked: Places of the inputs that get some.
        grads: Gradients of these.
    """

    recording: OperatorRecording
    last: Node | None
    outputs: list[Any]
    spec: Any
    wanted: list[int]
    tracked: list[int]
    grads: list[Any]


class JointFunction:
    """A function of tensors that runs what two compilers make of its graphs.

    Args:
        function: The function.
        forward: Takes the graph module of the forward part and its inputs, and gives a function of these.
        backward: The same for the backward part; `forward` where it is None.
        decompositions: Functions that stand for operators.
        partition: Gives the two graph modules, of the one of both parts, its inputs and how many results are forward.
    """

    def __init__(
        self, function: Callable[..., Any], forward: Callable[..., Any], backward: Callable[..., Any] | None,
        decompositions: Any = None, partition: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self._function, self._forward, self._backward = function, forward, backward or forward
        self._decompositions, self._partition = decompositions, partition
        self._known: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        key = (str(spec), tensor.is_grad_enabled(), *map(_kind, leaves))
        if key not in self._known:
            self._known[key] = self._compiled(leaves, spec)
        return self._known[key]([leaf for leaf in leaves if isinstance(leaf, tensor.Tensor)])

    def _compiled(self, leaves: list[Any], spec: Any) -> Callable[[list[Any]], Any]:
        done = self._recorded(leaves, spec)
        given = [leaf for leaf in leaves if isinstance(leaf, tensor.Tensor)]
        if not done.tracked or not done.wanted:
            whole = done.recording.finished(tuple(done.outputs), "GraphModule")
            for place, node in enumerate(n for n in whole.graph.nodes if n.op == "placeholder"):
                node.name = node.target = f"arg{place}_1"  # without gradients inputs are no primals
            whole.recompile()
            run = _unboxed(self._forward(whole, given))
            return lambda inputs: _pytree.tree_unflatten(list(run(*inputs)), done.spec)
        tangents = [tensor.ones_like(done.outputs[place]).detach() for place in done.wanted]
        parts = self._parts(_joint_module(done, len(given)), (given, tangents), len(done.outputs))
        forward = _unboxed(self._forward(parts[0], given))
        inputs = [node.meta.get("val") for node in parts[1].graph.nodes if node.op == "placeholder"]
        saved = inputs[: len(inputs) - len(tangents)]
        backward = _unboxed(self._backward(parts[1], [*(x.detach() for x in saved), *tangents]))
        run_both = _differentiable(forward, backward, done, len(given), [t.stride() for t in tangents])
        return lambda inputs: _pytree.tree_unflatten(list(run_both(inputs)), done.spec)

    def _parts(self, joint: GraphModule, inputs: Any, count: int) -> tuple[GraphModule, GraphModule]:
        if self._partition is None:
            return parted(joint, count)
        return self._partition(joint, inputs, num_fwd_outputs=count, static_lifetime_input_indices=[])

    def _recorded(self, leaves: list[Any], spec: Any) -> _Recorded:
        recording = OperatorRecording(self._decompositions)
        inputs: list[Any] = []
        copies = list(leaves)
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, tensor.Tensor):
                copies[place] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
                inputs.append(copies[place])
                recording.input(f"primals_{len(inputs)}", copies[place])
        args, kwargs = _pytree.tree_unflatten(copies, spec)
        with following_branches(recording):
            outputs, out_spec = _pytree.tree_flatten(self._function(*args, **kwargs))
        last = next(iter(reversed(list(recording.graph.nodes))), None)
        wanted = [i for i, out in enumerate(outputs) if isinstance(out, tensor.Tensor) and out.requires_grad]
        tracked = [i for i, value in enumerate(inputs) if value.requires_grad]
        grads = _gradients(recording, [outputs[i] for i in wanted], [inputs[i] for i in tracked])
        return _Recorded(recording, last, outputs, out_spec, wanted, tracked, grads)


def _gradients(recording: OperatorRecording, outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """Gradients of the inputs, by tangents of the outputs that are inputs of the graph."""
    if not outputs or not inputs:
        return []
    tangents = [tensor.ones_like(out).detach() for out in outputs]
    for number, tangent in enumerate(tangents, 1):
        recording.input(f"tangents_{number}", tangent)
    with following_branches(recording):
        return list(autograd.grad(outputs, inputs, tangents, allow_unused=True))


def _kind(leaf: Any) -> Any:
    """What a compiled function is kept for: a tensor's form, or the value itself."""
    if not isinstance(leaf, tensor.Tensor):
        return type(leaf), leaf
    return tuple(leaf.shape), _stride(leaf), leaf.dtype, str(leaf.device), leaf.requires_grad


def _stride(leaf: Any) -> Any:
    """Steps in memory, which say what a view can show; None for a tensor without such."""
    return leaf.stride() if leaf.layout is tensor.strided else None


def _unboxed(run: Callable[..., Any]) -> Callable[..., Any]:
    return (lambda *args: run(list(args))) if getattr(run, "_boxed_call", False) else run


def _joint_module(done: _Recorded, count: int) -> GraphModule:
    """The graph module of both parts: it gives the results and a gradient, or None, of each of the inputs."""
    recording = done.recording
    nodes = list(recording.graph.nodes)
    for node in nodes[nodes.index(done.last) + 1 if done.last is not None else 0 :]:
        node.meta["partitioner_tag"] = "is_backward"
    grads: list[Any] = [None] * count
    for place, grad in zip(done.tracked, done.grads, strict=True):
        grads[place] = recording.arguments(grad)
    outputs = [recording.arguments(out) for out in done.outputs]
    joint = _copied(recording.holder, nodes, [], (*outputs, *grads))
    for node in joint.graph.nodes:
        if isinstance(node.meta.get("val"), tensor.Tensor):
            node.meta["tensor_meta"] = _extract_tensor_metadata(node.meta["val"])
    return joint


def is_tangent(node: Node) -> bool:
    """Whether a node of a joint graph is an input of its backward part."""
    return node.op == "placeholder" and "tangents" in str(node.target)


def is_primal(node: Node) -> bool:
    """Whether a node of a joint graph is an input of its forward part."""
    return node.op == "placeholder" and not is_tangent(node)


def parted(joint: GraphModule, count: int) -> tuple[GraphModule, GraphModule]:
    """The graph modules of the forward and the backward part of a joint graph, whose first results are forward.

    The backward part takes what it reads of the forward part, which gives that behind its results, and the tangents.
    """
    nodes = list(joint.graph.nodes)
    results = _leaves(nodes.pop())
    late = {node for node in nodes if node.meta.get("partitioner_tag") == "is_backward"}
    for node in nodes:
        if is_tangent(node) or any(source in late for source in node.all_input_nodes):
            late.add(node)
    read = {early for node in late for early in node.all_input_nodes}
    read |= {grad for grad in results[count:] if isinstance(grad, Node)}
    early = [node for node in nodes if node not in late]
    saved = [node for node in early if node in read and node.op != "get_attr"]
    forward = _copied(joint, early, [], (*results[:count], *saved))
    return forward, _copied(joint, [node for node in nodes if node in late], saved, tuple(results[count:]))


def _leaves(output: Node) -> list[Any]:
    return list(_pytree.tree_leaves(output.args[0], is_leaf=lambda item: item is None))


def _copied(root: Any, nodes: list[Node], inputs: list[Node], outputs: Any) -> GraphModule:
    """A graph module of some nodes, where others that they read are inputs."""
    graph = Graph()
    made: dict[Node, Node] = {}
    for node in inputs:
        made[node] = graph.placeholder(node.name)
        made[node].meta = dict(node.meta)
    for node in (*(n for n in nodes if n.op == "placeholder"), *(n for n in nodes if n.op != "placeholder")):
        made[node] = graph.node_copy(node, lambda old: _copy_of(old, made, graph))
    graph.output(
        _pytree.tree_map(
            lambda item: _copy_of(item, made, graph) if isinstance(item, Node) else item, outputs
        )
    )
    for node in reversed(graph.nodes):
        if not node.users and (node.op == "get_attr" or node.target is operator.getitem):
            graph.erase_node(node)
    return GraphModule(root, graph, "GraphModule")


def _copy_of(node: Node, made: dict[Node, Node], graph: Graph) -> Node:
    if node not in made:  # a constant of the other part
        made[node] = graph.node_copy(node, lambda old: made[old])
    return made[node]


def _differentiable(
    forward: Callable[..., Any], backward: Callable[..., Any], done: _Recorded, count: int, strides: list[Any]
) -> Callable[[list[Any]], Any]:
    """Both functions as one of autograd; the backward graph was recorded with tangents of these strides."""
    results, wanted, tracked = len(done.outputs), done.wanted, done.tracked

    class Compiled(autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            out = forward(*inputs)
            ctx.kept = list(out[results:])
            ctx.mark_non_differentiable(
                *(x for i, x in enumerate(out[:results]) if i not in wanted and isinstance(x, tensor.Tensor))
            )
            return tuple(out[:results])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            tangents = (_laid_out(grads[i], stride) for i, stride in zip(wanted, strides, strict=True))
            found = backward(*ctx.kept, *tangents)
            return tuple(found[place] if place in tracked else None for place in range(count))

    return lambda inputs: Compiled.apply(*inputs)


def _laid_out(grad: Any, stride: Any) -> Any:
    """The gradient with these steps in memory."""
    if grad.layout is not tensor.strided or grad.stride() == stride:
        return grad
    return tensor.empty_strided(grad.shape, stride, dtype=grad.dtype, device=grad.device).copy_(grad)
