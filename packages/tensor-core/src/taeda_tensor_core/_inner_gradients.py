"""Gradients of tensors that consist of others: the graph knows what they consist of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taeda_tensor_core._C import Tensor


class Inner(NamedTuple):
    """How a class of tensors stands towards the tensors that it consists of."""

    kind: type
    #: What a result is sent back through, and what of a gradient belongs to each of these tensors.
    results: Callable[[Any], Any]
    tensors: Callable[[Any], list[Tensor]]
    weights: Callable[[Any, Any], list[Any]]
    #: A tensor of the class from gradients of the tensors of another.
    around: Callable[[Any, list[Any]], Any]


def is_of_engine(parts: Sequence[str]) -> bool:
    """Whether a qualified name is that of ``autograd.grad``, ``autograd.backward`` or of the method ``backward``."""
    return parts[-1] in ("grad", "backward")


def through_inner(inner: Inner, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """One of these functions where results or inputs are of a class that consists of other tensors."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **(kwargs or {}))
    given, names = bound.arguments, list(signature.parameters)
    of_weights = names[2] if names[1] == "inputs" else names[1]
    if given.get(of_weights) is None and given.get("grad_variables") is not None:
        of_weights = "grad_variables"
    roots, weights = _listed(given[names[0]]), _listed(given.get(of_weights))
    if len(weights) == len(roots) or not weights:
        pairs = zip(roots, weights or [None] * len(roots), strict=True)
        found = [pair for root, weight in pairs for pair in _pairs(inner, root, weight)]
        roots, weights = [root for root, _ in found], [weight for _, weight in found]
        given[names[0]], given[of_weights] = _alone(roots), _alone(weights)
    inputs = _listed(given.get("inputs"))
    taken = [inner.tensors(x) if isinstance(x, inner.kind) else [x] for x in inputs]
    if inputs:
        given["inputs"] = [tensor for tensors in taken for tensor in tensors]
    made = function(*bound.args, **bound.kwargs)
    if made is None:
        return None
    left = iter(made)
    groups = [[next(left) for _ in tensors] for tensors in taken]
    return tuple(
        _whole(inner, x, grads) if isinstance(x, inner.kind) else grads[0]
        for x, grads in zip(inputs, groups, strict=True)
    )


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _alone(values: list[Any]) -> Any:
    """The method takes one result, and no list."""
    return values[0] if len(values) == 1 else values


def _pairs(inner: Inner, root: Any, weight: Any) -> list[tuple[Any, Any]]:
    if not isinstance(root, inner.kind):
        return [(root, weight.to_dense() if isinstance(weight, inner.kind) else weight)]
    root = inner.results(root)
    tensors = inner.tensors(root)
    weights = [None] * len(tensors) if weight is None else inner.weights(root, weight)
    return list(zip(tensors, weights, strict=True))


def _whole(inner: Inner, x: Any, grads: list[Any]) -> Any:
    return None if any(g is None for g in grads) else inner.around(x, grads)
