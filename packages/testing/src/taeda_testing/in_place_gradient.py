"""Gradients of in-place forms, first and second, against those of the function form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_registry.slots import autograd, tensor
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import Failure, differentiated, function_of, to_tensors


def _whole(x: Any, change: Callable[[Any], Any], in_place: bool) -> Any:
    if not in_place:
        return change(x)
    whole = x * 1
    change(whole)
    return whole


def _part(dim: int) -> Callable[[Any, Callable[[Any], Any], bool], Any]:
    """The changed tensor stands between two others, in the first dimension or element by element."""

    def build(x: Any, change: Callable[[Any], Any], in_place: bool) -> Any:
        if not in_place:
            return tensor.stack([x * 2, change(x), x * 3], dim)
        base = tensor.stack([x * 2, x, x * 3], dim)
        change(base.select(dim, 1))
        return base

    return build


PLACES = {"whole": _whole, "rows": _part(0), "columns": _part(-1)}


def fits_in_place(record: OpRecord, sample: Sample) -> bool:
    """Whether the in-place form can hold the sample's result, and writes it (`transpose_` only turns the tensor)."""
    first = sample.args[0]
    if not isinstance(first, np.ndarray) or first.dtype.kind != "f":
        return False
    args = [to_tensors(value) for value in sample.args]
    result, strides = function_of(record)(*args, **sample.kwargs), args[0].stride()
    if tuple(result.shape) != first.shape or result.dtype != args[0].dtype:
        return False
    getattr(args[0], record.name + "_")(*args[1:], **sample.kwargs)
    return args[0].stride() == strides


def _gradients(
    record: OpRecord, sample: Sample, place: str, in_place: bool, seed: int
) -> list[np.ndarray | None]:
    rng = np.random.default_rng(seed)
    args = [to_tensors(value) for value in sample.args]
    leaves = [p.of(args).requires_grad_(True) for p in differentiated(record, sample)]
    form = getattr(tensor.Tensor, record.name + "_") if in_place else function_of(record)
    whole = PLACES[place](args[0], lambda target: form(target, *args[1:], **sample.kwargs), in_place)

    def weighted(values: Any) -> Any:
        return sum((v * v * to_tensors(rng.standard_normal(tuple(v.shape)))).sum() for v in values)

    first = autograd.grad(weighted([whole]), leaves, create_graph=True, allow_unused=True)
    total = weighted([g for g in first if g is not None])
    second = autograd.grad(total, leaves, allow_unused=True) if getattr(total, "requires_grad", False) else ()
    return [None if g is None else g.detach().numpy() for g in (*first, *second)]


def check_in_place_gradient(record: OpRecord, sample: Sample, seed: int = 0) -> None:
    """First and second gradients through the in-place form, on a whole tensor and on views, are the function form's.

    Args:
        record: an operator with an in-place form.
        sample: a call with float64 arrays, for which `fits_in_place` holds.
        seed: of the weights.

    Raises:
        Failure: a difference; the text names the operator and the kind of view.
    """
    for place in PLACES:
        if place == "columns" and sample.args[0].ndim == 0:
            continue
        expected = _gradients(record, sample, place, False, seed)
        found = _gradients(record, sample, place, True, seed)
        for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            zero = np.zeros(1)
            ours, theirs = (zero if g is None else g for g in (ours, theirs))
            if not np.allclose(ours, theirs, rtol=1e-9, atol=1e-11, equal_nan=True):
                where = f"{record.name}_ ({place}, gradient {i})"
                raise Failure(f"{where} differs:\n{ours}\nexpected\n{theirs}", where)
