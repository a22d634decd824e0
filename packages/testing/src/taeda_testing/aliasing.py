"""The aliasing table: calls whose target is, overlaps or shows an operand, held against the same calls on copies.

A target is the first argument of an in-place call, or the tensor given as out=. Each operand in turn is made of the
target's memory in every way of `WAYS`. The call must then give what it gives when all tensors are apart; one that ends
in an exception there must do so here too, and leave the target as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import Failure, Place, Where, brief, function_of, to_tensors, told_apart

#: Larger samples show nothing new.
LARGEST = 300


def _reversed(target: Any) -> Any:
    return target[::-1] if target.ndim else None


def _transposed(target: Any) -> Any:
    return target.mT if target.ndim >= 2 else None


def _first(target: Any) -> Any:
    return target[:1].expand(target.shape) if target.ndim and target.shape[0] else None


def _row(target: Any) -> Any:
    return target[0] if target.ndim and target.shape[0] else None


#: An operand made of the target: itself, and views that show other elements in its places, or one in many.
WAYS: dict[str, Callable[[Any], Any]] = {
    "the target": lambda target: target,
    "all of the target": lambda target: target[...],
    "the target reversed": _reversed,
    "the target transposed": _transposed,
    "the first of the target, expanded": _first,
    "the first of the target": _row,
}


@dataclass(frozen=True)
class Case:
    """One call: the target and the operand that shares its memory, both made anew by `build`."""

    place: Place
    way: str
    build: Callable[[], tuple[Any, Any]]


def _cases(array: np.ndarray, place: Place, device: str) -> Iterator[Case]:
    """Every way in which the operand at a place can share memory with a target that holds `array`."""
    if not 0 < array.size <= LARGEST:
        return
    for way, view in WAYS.items():

        def build(view: Callable[[Any], Any] = view) -> tuple[Any, Any]:
            # In memory of its own: that of an array could not grow where the result has another shape.
            target = to_tensors(np.array(array, order="C"), device).clone()
            return target, view(target)

        if build()[1] is not None:
            yield Case(place, way, build)

    for way, (mine, other) in {"one element before": (1, 0), "one element after": (0, 1)}.items():

        def shifted(mine: int = mine, other: int = other) -> tuple[Any, Any]:
            flat = np.concatenate([array.ravel(), array.ravel()[:1]])
            buffer = to_tensors(flat, device)
            return buffer[mine : mine + array.size].view(array.shape), buffer[
                other : other + array.size
            ].view(array.shape)

        yield Case(place, way, shifted)


def _tensor_places(args: tuple[Any, ...], first: int) -> Iterator[Place]:
    for i, value in enumerate(args[first:], first):
        if isinstance(value, np.ndarray):
            yield Place(i)
        elif isinstance(value, (list, tuple)):
            yield from (Place(i, k) for k, item in enumerate(value) if isinstance(item, np.ndarray))


def _values(made: Any) -> np.ndarray:
    return np.asarray(made.detach().cpu().contiguous().numpy())


def _outcome(call: Callable[[Any, list[Any]], Any], target: Any, args: list[Any]) -> np.ndarray | Exception:
    """What the target holds after the call, or what the call ended in."""
    before = _values(target).copy()
    tensor.manual_seed(0)
    refusals = (RuntimeError, ValueError, TypeError, IndexError, ArithmeticError)
    try:
        call(target, args)
    except refusals as error:
        if target.shape == before.shape and not np.array_equal(
            _values(target), before, equal_nan=before.dtype.kind in "fc"
        ):
            raise Failure(f"a call that ended in {error!r} has changed its target") from error
        return error
    try:
        return _values(target).copy()
    except refusals as error:  # an asynchronous device finds out when the target may be written already
        return error


def _compare(where: str, apart: Any, together: Any) -> None:
    if isinstance(together, Exception):
        if isinstance(apart, Exception):
            return
        raise Failure(
            f"{where}: ended in {together!r}, on copies gives {brief(apart)}",
            where,
            brief(apart),
            repr(together),
        )
    if isinstance(apart, Exception):
        raise Failure(
            f"{where}: gives {brief(together)}, on copies {apart!r}", where, repr(apart), brief(together)
        )
    same = apart.shape == together.shape and np.allclose(
        together, apart, rtol=1e-5, atol=1e-6, equal_nan=apart.dtype.kind in "fc"
    )
    if not same:
        wanted, found = told_apart(apart, together)
        raise Failure(f"{where}: gives {found}, on copies {wanted}", where, wanted, found)


def _run(
    record: OpRecord,
    sample: Sample,
    cases: Iterator[Case],
    call: Callable[[Any, list[Any]], Any],
    device: str,
    form: str,
) -> int:
    """Number of calls."""
    count = 0
    for case in cases:
        outcomes = []
        for share in (False, True):
            args = [to_tensors(value, device) for value in sample.args]
            target, operand = case.build()
            if not share:
                target, operand = target.clone(), operand.clone()
            case.place.put(args, operand)
            outcomes.append(_outcome(call, target, args))
        _compare(f"{Where(record, sample, form)}: {case.place} is {case.way}", *outcomes)
        count += 1
    return count


def check_aliased_in_place(record: OpRecord, sample: Sample, device: str = "cpu") -> int:
    """The in-place form with every operand made of the target's memory.

    Returns:
        Number of calls.

    Raises:
        Failure: a call gave something else than on copies.
    """
    only = 0 in record.writes
    if not (record.in_place or only) or not sample.args or not isinstance(sample.args[0], np.ndarray):
        return 0

    def call(target: Any, args: list[Any]) -> Any:
        if only:
            return function_of(record)(target, *args[1:], **sample.kwargs)
        return getattr(target, record.name + "_")(*args[1:], **sample.kwargs)

    return sum(
        _run(record, sample, _cases(sample.args[0], place, device), call, device, "in place, ")
        for place in _tensor_places(sample.args, 1)
    )


def check_aliased_out(record: OpRecord, sample: Sample, device: str = "cpu") -> int:
    """The out= form, where the target is or overlaps each operand of the shape of the result.

    Returns, raises: as `check_aliased_in_place`.
    """
    if not record.out:
        return 0
    kwargs = {key: to_tensors(value, device) for key, value in sample.kwargs.items()}
    made = function_of(record)(*[to_tensors(value, device) for value in sample.args], **kwargs)
    if not isinstance(made, tensor.Tensor):
        return 0

    def call(target: Any, args: list[Any]) -> Any:
        return function_of(record)(*args, **kwargs, out=target)

    count = 0
    for place in _tensor_places(sample.args, 0):
        array = place.of(sample.args)
        if math.prod(made.shape) != array.size or tuple(made.shape) != array.shape:
            continue
        count += _run(record, sample, _cases(array, place, device), call, device, "out=, ")
    return count
