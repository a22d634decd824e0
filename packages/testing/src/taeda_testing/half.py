"""Half precision held to float64: the same inputs, and an error of a few units in the last place of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import Failure, Where, differentiated, function_of, to_tensors

# Bits behind the point, exponent of the smallest normal number, half of the largest number.
FORMATS = {"float16": (10, -14, 32752.0), "bfloat16": (7, -126, 1.6e38)}
# Units of the result's dtype that a result may be off.
UNITS = 2.0


def units(values: np.ndarray, name: str) -> np.ndarray:
    """The distance between neighbours of each value in the named dtype."""
    bits, lowest, _ = FORMATS[name]
    _, exponent = np.frexp(values)
    return np.ldexp(1.0, np.maximum(exponent - 1, lowest) - bits)


def hard_samples(samples: Iterator[Sample]) -> Iterator[Sample]:
    """Each sample, with large values, with a large mean, and, where it has one array, with long rows."""
    for sample in samples:
        yield sample
        yield _changed(sample, lambda array: array * 9)
        yield _changed(sample, lambda array: array + 100)
        first = sample.args[0] if sample.args else None
        if _is_real(first) and first.ndim and first.size and sum(_is_real(a) for a in sample.args) == 1:
            long = np.concatenate([first] * max(1, 3000 // first.shape[-1]), -1)
            yield Sample((long, *sample.args[1:]), sample.kwargs, sample.note)


def _changed(sample: Sample, change: Callable[[np.ndarray], np.ndarray]) -> Sample:
    def of(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(of(item) for item in value)
        return change(value) if _is_real(value) else value

    return Sample(tuple(of(value) for value in sample.args), sample.kwargs, sample.note)


def _is_real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, change) for item in value)
    return change(value) if isinstance(value, tensor.Tensor) and value.is_floating_point() else value


def _run(record: OpRecord, operands: Any, dtype: Any, grads: list[Any]) -> tuple[list[Any], list[Any]]:
    """Results and gradients of a call with floating operands in `dtype`; `grads` gets one for each result."""
    sample, halves = operands
    args, kwargs = (_map(part, lambda t: t.detach().to(dtype)) for part in halves)
    places = differentiated(record, sample) if record.differentiable else []
    for place in places:
        place.of(args).requires_grad_(True)
    found = function_of(record)(*args, **kwargs)
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    results = [r for r in results if isinstance(r, tensor.Tensor) and r.is_floating_point()]
    tracked = [r for r in results if r.requires_grad]
    for r in tracked[len(grads) :]:
        values = np.random.default_rng(len(grads)).integers(-8, 9, tuple(r.shape)) / 8  # exact in every dtype
        grads.append(to_tensors(np.asarray(values)))
    if tracked:  # at once: gradients that are added up in .grad would round each time
        sum((r * g.to(r.dtype)).sum() for r, g in zip(tracked, grads, strict=True)).backward()
    return results, [place.of(args).grad for place in places]


def check_half(record: OpRecord, sample: Sample, name: str) -> bool:
    """The operator in the named half precision against itself in float64, values and gradients.

    What float32 loses on the same operands is allowed besides: intermediate results are float32, no more.

    Returns:
        Whether there was anything to compare: float64 and float32 take the call.

    Raises:
        Failure: a result or gradient that is off by more; the text names both.
    """
    dtype = getattr(tensor, name)

    def rounded(value: Any) -> Any:
        if isinstance(
            value, np.floating
        ):  # a number in an operand's place, which some operators round as operands
            return type(value)(tensor.tensor(float(value), dtype=dtype).item())
        return _map(to_tensors(value), lambda t: t.to(dtype))

    args = [rounded(value) for value in sample.args]
    kwargs = {key: rounded(value) for key, value in sample.kwargs.items()}
    operands, grads = (sample, (args, kwargs)), []
    try:
        exact, exact_grads = _run(record, operands, tensor.float64, grads)
        single, single_grads = _run(record, operands, tensor.float32, grads)
    except (
        RuntimeError,
        ValueError,
        IndexError,
        TypeError,
    ):  # a changed sample may be none that the operator takes
        return False
    half, half_grads = _run(record, operands, dtype, grads)
    kinds = [("result", half, exact, single)]
    if all(bool(r.isfinite().all()) for r in half):  # no gradient comes by a result that overflowed
        kinds.append(("gradient", half_grads, exact_grads, single_grads))
    for what, found, right, between in kinds:
        for i, triple in enumerate(zip(found, right, between, strict=True)):
            if all(t is not None for t in triple):
                off = worst(*triple, name, record.half == "largest")
                if off > UNITS:
                    where = Where(record, sample, f"{name}, ")
                    text = f"{what} {i} is {off:.3g} units off: {triple[0]}, exact {triple[1]}"
                    raise Failure(f"{where}: {text}")
    return True


def worst(found: Any, exact: Any, single: Any, name: str, at_largest: bool = False) -> float:
    """The largest error of `found` beyond what `single` is off, in units at each value or at the largest (or 1)."""
    a, b, c = (t.detach().to(tensor.float64).numpy() for t in (found, exact, single))
    near = np.isfinite(b) & np.isfinite(c) & (np.abs(b) < FORMATS[name][2]) & (np.abs(c) < FORMATS[name][2])
    if not near.any():
        return 0.0
    a, b, c = a[near], b[near], c[near]
    allowed = 4 * np.abs(c - b).max() + 2.0**-20 * np.abs(b).max()
    unit = units(np.full_like(b, max(1.0, np.abs(b).max())) if at_largest else b, name)
    with np.errstate(all="ignore"):
        error = np.nan_to_num(np.abs(a - b), nan=np.inf) - allowed
    return float(max(0.0, (error / unit).max()))
