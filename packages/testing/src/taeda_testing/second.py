"""Second derivatives: gradients of gradients against differences of first gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from taeda_registry.slots import autograd
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import (
    Failure,
    Place,
    describe,
    differentiated,
    function_of,
    to_tensors,
    weighted_sum,
    weights_like,
)


def check_second_gradient(
    record: OpRecord, sample: Sample, seed: int = 0, step: float = 1e-6, tolerance: float = 1e-4
) -> None:
    """Derivatives of the weighted first gradient along a random direction of each input and of the incoming gradient.

    Args:
        record: the operator.
        sample: a call with float64 or complex128 arrays.
        seed: of the weights.
        step: of the central differences.
        tolerance: absolute, and ten times that relative.

    Raises:
        Failure: a difference; the text names the argument.
    """
    rng = np.random.default_rng(seed)
    places = differentiated(record, sample)
    inputs = [place.of(sample.args) for place in places]
    outputs = _first(record, sample, places, inputs, None)[0]
    arriving = [weights_like(rng, out.detach().numpy()) for out in outputs]
    weights = [weights_like(rng, array) for array in inputs]
    leaves = [*inputs, *arriving]

    def weighted(arrays: list[np.ndarray], recorded: bool) -> tuple[Any, list[Any]]:
        """The weighted sum of the first gradients, and the tensors it was computed from."""
        n = len(inputs)
        _, tensors, grads = _first(record, sample, places, arrays[:n], arrays[n:], recorded)
        reached = [(g, w) for g, w in zip(grads, weights, strict=True) if g is not None]
        return weighted_sum(*zip(*reached, strict=True)) if reached else 0, tensors

    total, tensors = weighted(leaves, True)
    if not getattr(total, "requires_grad", False):
        found = [None] * len(leaves)  # linear in everything: the first gradient is a constant
    else:
        found = list(autograd.grad(total, tensors, allow_unused=True))
    for place, (array, grad) in enumerate(zip(leaves, found, strict=True)):
        direction = weights_like(rng, array)
        ends = []
        for sign in (1, -1):
            moved = list(leaves)
            moved[place] = array + sign * step * direction
            ends.append(float(weighted(moved, False)[0]))
        numeric = (ends[0] - ends[1]) / (2 * step)
        exact = 0.0 if grad is None else float((grad.detach().numpy() * direction.conj()).sum().real)
        if not np.isclose(exact, numeric, rtol=tolerance * 10, atol=tolerance):
            what = str(places[place]) if place < len(inputs) else "the incoming gradient"
            raise Failure(
                f"{record.name}: second derivative by {what} is {exact}, expected {numeric} ({describe(sample)})"
            )


def _first(
    record: OpRecord,
    sample: Sample,
    places: list[Place],
    inputs: list[np.ndarray],
    arriving: list[np.ndarray] | None,
    recorded: bool = False,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Results that require grad; the leaves (inputs, incoming gradients); first gradients, where asked for."""
    args = [to_tensors(value) for value in sample.args]
    for place, array in zip(places, inputs, strict=True):
        place.put(args, to_tensors(np.asarray(array)).requires_grad_(True))
    kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
    results = function_of(record)(*args, **kwargs)
    outputs = [r for r in (results if isinstance(results, (list, tuple)) else [results]) if r.requires_grad]
    if arriving is None:
        return outputs, [], []
    incoming = [to_tensors(np.asarray(a)).requires_grad_(recorded) for a in arriving]
    wanted = [place.of(args) for place in places]
    grads = autograd.grad(outputs, wanted, incoming, create_graph=recorded, allow_unused=True)
    return outputs, [*wanted, *incoming], list(grads)
