"""backward and grad: running the graph."""

from __future__ import annotations

import warnings

from taeda_autograd import _C
from taeda_autograd.graph import GradientEdge
from taeda_tensor_core import Tensor, overridable, stack, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _as_tuple(value: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None) -> tuple:
    if value is None:
        return ()
    return (value,) if isinstance(value, (Tensor, GradientEdge)) else tuple(value)


def _zeros(place: Tensor | GradientEdge) -> Tensor:
    if isinstance(place, Tensor):
        return zeros_like(place)
    raise RuntimeError("grad: materialize_grads=True cannot make zeros for an unused GradientEdge")


def _weights(name: str, roots: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
    """The weights of the roots, without those behind them; whole numbers are taken in the dtype of a real root."""
    weights = _as_tuple(given)[: len(roots)]
    if given is not None and len(weights) < len(roots):
        raise RuntimeError(
            f"{name}: found {len(weights)} weights of {len(roots)} roots, expected one for each"
        )
    for i, (root, weight) in enumerate(zip(roots, weights, strict=False)):
        if not isinstance(weight, Tensor) or weight.is_floating_point() or weight.is_complex():
            continue
        if isinstance(root, Tensor) and root.is_floating_point():
            weights = (*weights[:i], weight.to(root.dtype), *weights[i + 1 :])
    return weights


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves they depend on.

    Args:
        tensors: Roots of the computation, or their gradient edges.
        grad_tensors: Weight of every element of each root, of the root's shape; not needed for roots of one element.
        retain_graph: Keep what the graph saved, so that it can be run again; by default the value of `create_graph`.
        create_graph: Record the computation of the gradients, for derivatives of higher order.
        grad_variables: The older name of `grad_tensors`, with a warning.
        inputs: Accumulate into these tensors only, or into the leaves of these edges.

    Raises:
        RuntimeError: A root needs no gradient, or has several elements and no weight; or the graph was freed by an
            earlier call.

    Example:
        >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
        >>> taeda.autograd.backward((x * x).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("backward: argument 'inputs' is empty, expected at least one tensor or None")
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: arguments 'grad_tensors' and 'grad_variables' exclude each other")
        warnings.warn(
            "backward: argument 'grad_variables' is deprecated: give 'grad_tensors'",
            FutureWarning,
            stacklevel=2,
        )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    roots = _as_tuple(tensors)
    weights = _weights("backward", roots, grad_tensors)
    _C.run_backward(roots, weights, bool(keep), bool(create_graph), inputs or (), False, True)


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | dict[str, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...] | dict[str, Tensor]:
    """Gradients of `outputs` with respect to `inputs`, as new tensors; no ``.grad`` changes.

    Args:
        outputs: Roots of the computation, or their gradient edges.
        inputs: Tensors to differentiate by, leaves or not, or their gradient edges; or tensors by name.
        grad_outputs: Weights of the outputs, as in :func:`backward`.
        retain_graph: Keep what the graph saved; by default the value of `create_graph`.
        create_graph: Record the computation of the gradients.
        only_inputs: Of no effect, as elsewhere: no ``.grad`` changes. False warns.
        allow_unused: Give None for inputs that the outputs do not depend on, instead of raising.
        is_grads_batched: The first dimension of `grad_outputs` is a batch, for each row of which gradients are given:
            theirs have it too.
        materialize_grads: Give zeros in the place of None; with `create_graph` they can be differentiated.

    Returns:
        One gradient for each input, of the input's shape and dtype; by the names of the inputs where they have some.

    Raises:
        RuntimeError: An input needs no gradient or was not used.

    Example:
        >>> x = taeda.tensor(3.0, requires_grad=True)
        >>> taeda.autograd.grad(x**2, x)
        (tensor(6.),)
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads=True needs allow_unused=True or None, found False")
    names = tuple(inputs) if isinstance(inputs, dict) else None
    inputs = _as_tuple(inputs if names is None else inputs.values())
    if not inputs:
        raise RuntimeError("grad: argument 'inputs' is empty, expected at least one tensor")
    keep = bool(create_graph if retain_graph is None else retain_graph)
    unused = bool(allow_unused) or materialize_grads
    outputs = _as_tuple(outputs)
    weights = _weights("grad", outputs, grad_outputs)

    def once(weights: Any, keep: bool) -> tuple[Tensor, ...]:
        return _C.run_backward(outputs, weights, keep, bool(create_graph), inputs, True, unused)

    results = _batched(once, weights, keep) if is_grads_batched else once(weights, keep)
    if materialize_grads:
        results = tuple(
            _zeros(i).requires_grad_(create_graph) if r is None else r
            for r, i in zip(results, inputs, strict=True)
        )
    return results if names is None else dict(zip(names, results, strict=True))


def _batched(once: Callable[[Any, bool], tuple], weights: Any, keep: bool) -> tuple[Any, ...]:
    """The gradients for each row of the weights, stacked; the graph is run once for a row."""
    sizes = {w.shape[0] if w.dim() else -1 for w in weights or () if w is not None}
    if len(sizes) != 1 or -1 in sizes:
        raise RuntimeError(
            "grad: with is_grads_batched=True all of 'grad_outputs' need the same first dimension, found the shapes "
            f"{[None if w is None else tuple(w.shape) for w in weights or ()]}"
        )
    count = sizes.pop()
    if count == 0:
        raise RuntimeError("grad: with is_grads_batched=True 'grad_outputs' need at least one row")
    rows = [
        once(tuple(w if w is None else w[i] for w in weights), keep or i < count - 1) for i in range(count)
    ]
    return tuple(None if parts[0] is None else stack(parts) for parts in zip(*rows, strict=True))


overridable((backward, grad))
