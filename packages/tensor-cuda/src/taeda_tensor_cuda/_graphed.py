"""Functions and modules whose forward and backward run as graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_MODULE_TEXT = (
    "make_graphed_callables: a module must have no hooks when it is given, and no buffer that requires grad"
)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Callables whose forward and backward are recorded, and run again for further inputs of the same shapes.

    Of a module the parameters are inputs too, and its `forward` is replaced; it is run as before in the other mode
    (training or evaluating) than that of the recording. Results share memory from call to call, and can be
    differentiated once. They must be used in the order in which they are given.

    Args:
        callables: Module or function, or a tuple of them, whose memory is shared.
        sample_args: A tuple of tensors, or one for each callable.
        num_warmup_iters: How often each is run before it is recorded.
        allow_unused_input: Whether an input that the results do not depend on has no gradient; else that is an error.
        pool: Memory to use, as for `CUDAGraph.capture_begin`.

    Raises:
        RuntimeError: Autocast keeps converted weights, or there is no CUDA device.
        TypeError: An argument or a result is no tensor.
        ValueError: A module has hooks or a buffer that requires grad.
    """
    from taeda_registry.slots import autograd, tensor
    from taeda_tensor_cuda.graphs import CUDAGraph, graph, graph_pool_handle

    if tensor.is_autocast_enabled("cuda") and tensor.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables: autocast must not keep converted weights; cache_enabled=False"
        )
    alone = not isinstance(callables, tuple)
    parts = [
        _Part(each, args)
        for each, args in ([(callables, sample_args)] if alone else zip(callables, sample_args, strict=True))
    ]
    memory = graph_pool_handle() if pool is None else pool
    kind = tensor.get_device_module("cuda")
    kind.synchronize()
    with tensor.Stream("cuda"):
        for part in parts:
            for _ in range(num_warmup_iters):
                outputs = part.run()
                part.gradients(autograd, outputs, _like(tensor, outputs), allow_unused_input)
    kind.synchronize()
    # In the order in which they will run, since they share memory.
    for part in parts:
        with graph(part.forward_graph, memory):
            part.outputs = part.run()
    for part in reversed(parts):
        part.grad_outputs = _like(tensor, part.outputs)
        if any(each is not None for each in part.grad_outputs):
            part.backward_graph = CUDAGraph()
            with graph(part.backward_graph, memory):
                part.grad_inputs = part.gradients(
                    autograd, part.outputs, part.grad_outputs, allow_unused_input
                )
    made = tuple(part.replaced(part.function(autograd)) for part in parts)
    return made[0] if alone else made


def _like(tensor: Any, outputs: Sequence[Any]) -> list[Any]:
    return [tensor.empty_like(each) if each.requires_grad else None for each in outputs]


class _Part:
    """One callable, with what its graphs read and write."""

    def __init__(self, given: Any, args: Any) -> None:
        from taeda_registry.slots import tensor
        from taeda_tensor_cuda.graphs import CUDAGraph

        self.callable, self.args = given, tuple(args)
        for each in self.args:
            if not isinstance(each, tensor.Tensor):
                raise TypeError(
                    f"make_graphed_callables: sample arguments must be tensors, found {type(each).__name__}"
                )
        self.is_module = callable(getattr(given, "parameters", None))
        if self.is_module:
            hooks = any(
                getattr(given, name, None)
                for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
            )
            if hooks or any(buffer.requires_grad for buffer in given.buffers()):
                raise ValueError(_MODULE_TEXT)
        self.parameters = tuple(given.parameters()) if self.is_module else ()
        self.inputs = self.args + self.parameters
        self.forward_graph, self.backward_graph = CUDAGraph(), None
        self.outputs: list[Any] = []
        self.grad_outputs: list[Any] = []
        self.grad_inputs: list[Any] = [None] * len(self.inputs)
        self.shape: Any = None

    def run(self) -> list[Any]:
        """Calls it; the tensors that it gives."""
        from taeda_registry.slots import tensor

        self.shape = self.callable(*self.args)
        leaves: list[Any] = []
        _walk(self.shape, leaves.append)
        for each in leaves:
            if not isinstance(each, tensor.Tensor):
                raise TypeError(
                    f"make_graphed_callables: results must be tensors, found {type(each).__name__}"
                )
        return leaves

    def gradients(self, autograd: Any, outputs: list[Any], grads: list[Any], unused: bool) -> list[Any]:
        """Of the inputs, in their order; None where one needs none."""
        wanted = [each for each in self.inputs if each.requires_grad]
        pairs = [(each, grad) for each, grad in zip(outputs, grads, strict=True) if each.requires_grad]
        if not wanted or not pairs:
            return [None] * len(self.inputs)
        ends, begins = zip(*pairs, strict=True)
        found = iter(autograd.grad(ends, wanted, begins, only_inputs=True, allow_unused=unused))
        return [next(found) if each.requires_grad else None for each in self.inputs]

    def function(self, autograd: Any) -> Callable[..., Any]:
        """Runs the graphs for new arguments."""
        part = self
        part.shape = _walk(part.shape, lambda each: None)  # the tensors of the recording live in `outputs`

        class Graphed(autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for own, given in zip(part.args, inputs, strict=False):
                    if own.data_ptr() != given.data_ptr():
                        own.copy_(given)
                part.forward_graph.replay()
                return tuple(each.detach() for each in part.outputs)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for own, given in zip(part.grad_outputs, grads, strict=True):
                    if own is not None and own.data_ptr() != given.data_ptr():
                        own.copy_(given)
                if part.backward_graph is not None:
                    part.backward_graph.replay()
                return tuple(None if each is None else each.detach() for each in part.grad_inputs)

        # What is recorded cannot be differentiated again.
        Graphed.backward = staticmethod(autograd.function.once_differentiable(Graphed.backward))

        def graphed(*arguments: Any) -> Any:
            if len(arguments) != len(part.args):
                raise TypeError(
                    f"expected {len(part.args)} tensors, as in the recording, found {len(arguments)}"
                )
            given = iter(Graphed.apply(*arguments, *part.parameters))
            return _walk(part.shape, lambda _: next(given))

        return graphed

    def replaced(self, graphed: Callable[..., Any]) -> Any:
        """A module with a new forward, or the function itself."""
        if not self.is_module:
            return graphed
        module, training, before = self.callable, self.callable.training, self.callable.forward

        def forward(*arguments: Any, **more: Any) -> Any:
            return graphed(*arguments, **more) if module.training == training else before(*arguments, **more)

        module.forward = forward
        return module


def _walk(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """The same tuples, lists and dicts with `leaf` called for what is none, in order."""
    if isinstance(tree, dict):
        return {key: _walk(value, leaf) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_walk(each, leaf) for each in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(_walk(each, leaf) for each in tree)
    return leaf(tree)
