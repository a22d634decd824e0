"""One gradient whatever the order: with the graph of the gradient recorded, and without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from taeda_registry.slots import autograd
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import (
    Failure,
    Place,
    brief,
    describe,
    differentiated,
    function_of,
    to_tensors,
    weights_like,
)

RELATIVE = {"float32": 1e-6, "float64": 1e-12, "complex64": 1e-6, "complex128": 1e-12}
SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 20.0, -20.0, 100.0, -100.0)
UNBOUNDED = (np.inf, -np.inf, np.nan)


def special_samples(record: OpRecord, sample: Sample, rng: np.random.Generator) -> Iterator[Sample]:
    """The call with special values: kinks (its own options are some), zeros, saturated and unbounded ones."""
    places = differentiated(record, sample)
    options = [v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, (int, float))]
    finite = np.array([*SPECIAL, *(s * float(v) for v in options for s in (1, -1) if np.isfinite(v))])
    for values in (finite, np.array([*finite, *UNBOUNDED * 3])):
        args = list(sample.args)
        for place in places:
            array = place.of(sample.args)
            place.put(args, np.asarray(rng.choice(values, array.shape)).astype(array.dtype))
        yield replace(sample, args=tuple(args))


def check_orders(record: OpRecord, sample: Sample, seed: int = 0) -> bool:
    """The first gradient with and without ``create_graph``.

    Returns: Whether there were two to compare: not where the operator refuses the values, or to record.

    Raises:
        Failure: a difference; the text names the argument and the values.
    """
    places = differentiated(record, sample)
    try:
        args, outputs = _called(record, sample, places)
    except (RuntimeError, ValueError, IndexError):
        return False
    if not outputs or not places:
        return False
    rng = np.random.default_rng(seed)
    weights = [to_tensors(weights_like(rng, out.detach().numpy()).astype(_dtype(out))) for out in outputs]
    terms = (
        _largest(w.numpy() for w in weights)
        * max(1, _largest(place.of(sample.args) for place in places)) ** 2
    )
    wanted = [place.of(args) for place in places]
    plain = autograd.grad(outputs, wanted, weights, retain_graph=True, allow_unused=True)
    for w in weights:
        w.requires_grad_(True)
    try:
        recorded = autograd.grad(outputs, wanted, weights, create_graph=True, allow_unused=True)
    except NotImplementedError:
        return False
    for place, one, other in zip(places, plain, recorded, strict=True):
        array = place.of(sample.args)
        a, b = (np.zeros_like(array) if g is None else g.detach().numpy() for g in (one, other))
        if (wrong := _differ(record, a, b, terms)) is not None:
            at = array[wrong] if array.shape == wrong.shape else array
            raise Failure(
                f"{record.name}: the gradient of {place} is {brief(b[wrong])} with create_graph=True, "
                f"{brief(a[wrong])} without, where the argument is {brief(at)} ({describe(sample)})"
            )
    return True


def _dtype(out: Any) -> str:
    return str(out.dtype).rpartition(".")[2]


def _called(record: OpRecord, sample: Sample, places: list[Place]) -> tuple[list[Any], list[Any]]:
    args = [to_tensors(value) for value in sample.args]
    for place in places:
        place.of(args).requires_grad_(True)
    kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
    results = function_of(record)(*args, **kwargs)
    results = results if isinstance(results, (list, tuple)) else [results]
    return args, [r for r in results if r.requires_grad]


def _largest(arrays: Iterable[np.ndarray]) -> float:
    """The largest finite size of an element."""
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays), default=0.0)


def _differ(record: OpRecord, a: np.ndarray, b: np.ndarray, terms: float) -> np.ndarray | None:
    """Where two gradients differ by more than rounding; None for nowhere."""
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        if record.cancels:
            size = np.maximum(terms, size[finite].max(initial=0))
        near = finite & (np.abs(a - b) <= RELATIVE[a.dtype.name] * size + np.finfo(a.dtype).tiny)
    wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    return wrong if wrong.any() else None
