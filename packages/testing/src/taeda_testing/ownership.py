"""Who owns a result: an operator's result shows its arguments or nothing, and keeps its hooks when written in place."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from taeda_registry.slots import autograd, tensor
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import Failure, describe, differentiated, function_of, to_tensors


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    return [value] if isinstance(value, tensor.Tensor) else []


def _call(record: OpRecord, sample: Sample, recorded: bool) -> tuple[list[Any], list[Any]]:
    """The tensors among the arguments and among the results; arguments are results themselves, not leaves."""
    args = [to_tensors(value) for value in sample.args]
    kwargs = {key: to_tensors(value) for key, value in sample.kwargs.items()}
    if recorded:
        for place in differentiated(record, sample):
            place.put(args, place.of(args).requires_grad_(True) * 1)
    results = _tensors(function_of(record)(*args, **kwargs))
    return [*_tensors(args), *_tensors(list(kwargs.values()))], results


def check_ownership(record: OpRecord, sample: Sample) -> None:
    """A result is a view only of an argument, or of what an argument is a view of; recorded or not.

    Results that carry no gradients, indices for instance, may be anything.

    Raises:
        Failure: a result shows a tensor that the caller cannot know.
    """
    for recorded in (False, True):
        with nullcontext() if recorded else autograd.no_grad():
            given, results = _call(record, sample, recorded)
        known = [t for g in given for t in (g, g._base) if t is not None]
        for i, result in enumerate(results):
            base = result._base if result.is_floating_point() or result.is_complex() else None
            if base is not None and not any(base is t for t in known):
                where = f"{record.name} ({describe(sample)})"
                raise Failure(f"{where}: result {i} is a view of no argument", where, "no base", "a base")


def check_hooks_stay(record: OpRecord, sample: Sample) -> int:
    """A hook on a result that is no view sees its gradient although the result is written in place afterwards.

    Returns:
        How many results were looked at.

    Raises:
        Failure: the hook was not called.
    """
    _, results = _call(record, sample, True)
    looked_at = 0
    for i, result in enumerate(results):
        if not result.requires_grad or result._base is not None or result.is_complex():
            continue
        seen: list[Any] = []
        result.register_hook(seen.append)
        result.mul_(2)
        try:
            result.sum().backward(retain_graph=True)
        except RuntimeError as error:  # the formula needs what was overwritten, and says so after the hook
            if "modified by an inplace operation" not in str(error):
                raise
        looked_at += 1
        if len(seen) != 1 or seen[0].tolist() != tensor.full_like(result, 2).tolist():
            where = f"{record.name} ({describe(sample)})"
            raise Failure(
                f"{where}: the hook of result {i} saw {seen}", where, "one gradient of 2", str(seen)
            )
    return looked_at
