"""Drives records: forward, in-place, out= and gradient, on a device of the active tensor provider."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.arrays import layouts
from taeda_testing.intact import strayed, written_argument
from taeda_testing.record import ErrorSample, OpRecord, Sample

RTOL = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}
ATOL = {
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}


class Failure(AssertionError):
    """Something that differs from its record or reference.

    Args:
        message: everything in one text.
        call, expected, found: the same in parts, for reports; may be empty.
    """

    def __init__(self, message: str, call: str = "", expected: str = "", found: str = "") -> None:
        super().__init__(message)
        self.call, self.expected, self.found = call, expected, found


def function_of(record: OpRecord) -> Callable[..., Any]:
    """The provider's function, else its method; AttributeError when it has neither."""
    if record.namespace not in ("", "ops"):
        return getattr(attrgetter(record.namespace)(tensor.ops), record.name)
    found = getattr(tensor.ops if record.namespace else tensor, record.name, None)
    return getattr(tensor.Tensor, record.name) if found is None else found


def _map(value: Any, convert: Callable[[np.ndarray], Any]) -> Any:
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, np.dtype):
        return getattr(tensor, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, convert) for item in value)
    return value


def to_tensors(value: Any, device: str = "cpu") -> Any:
    """Arrays (also inside lists) as tensors of the same strides; the memory is not shared with the original."""

    def convert(array: np.ndarray) -> Any:
        made = tensor.from_numpy(_same_layout(array))
        return made if device == "cpu" else made.to(device)

    return _map(value, convert)


def _same_layout(array: np.ndarray) -> np.ndarray:
    """A copy whose strides have the same order and signs."""
    if array.size == 0 or array.ndim == 0 or array.flags.c_contiguous:
        return array.copy()
    flips = tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)
    upright = array[flips]
    spaced = any(abs(s) > array.itemsize for s in upright.strides[-1:]) and not upright.T.flags.c_contiguous
    if spaced and upright.shape[-1] > 1:
        wide = np.zeros((*upright.shape[:-1], upright.shape[-1] * 2), array.dtype)
        wide[..., ::2] = upright
        return wide[..., ::2][flips]
    return upright.copy(order="K")[flips]


def _arrays(result: Any) -> list[np.ndarray]:
    if isinstance(result, tensor.Tensor):
        return [np.asarray(result.detach().cpu().numpy())]
    if isinstance(result, (list, tuple)):
        return [array for item in result for array in _arrays(item)]
    return [np.asarray(result)]


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _flat(item)]
    return [np.asarray(value)]


def brief(array: Any, digits: int = 6, begin: int = 0) -> str:
    """Values of a small array, or dtype, shape and eight values of a large one, from the element `begin` on."""
    array = np.asarray(array)
    shown = array.ravel()[begin : begin + 8]
    values = np.array2string(shown, precision=digits, separator=", ", max_line_width=1000)
    more = ", ..." if array.size > begin + 8 else ""
    place = f" from element {begin}:" if begin else ""
    return f"{array.dtype}{list(array.shape)}{place} {values[:-1]}{more}]"


def told_apart(expected: Any, found: Any) -> tuple[str, str]:
    """Two arrays in brief, from where they differ and with as many digits as show that."""
    expected, found = np.asarray(expected), np.asarray(found)
    begin = 0
    if expected.shape == found.shape:
        pairs = zip(expected.ravel().tolist(), found.ravel().tolist(), strict=True)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b and (a == a or b == b)), 0)
        begin = first if first >= 8 else 0
    for digits in (6, 9, 17):
        texts = brief(expected, digits, begin), brief(found, digits, begin)
        if texts[0] != texts[1]:
            break
    return texts


@dataclass(frozen=True)
class Where:
    """How messages name a call; spelled out only when there is a message, which takes longer than the call."""

    record: OpRecord
    sample: Sample | ErrorSample
    form: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.record.name}{self.suffix} ({self.form}{describe(self.sample)})"


def _differs(where: Where | str, what: str, expected: Any, found: Any) -> Failure:
    text = f"{where}: {what} is {found}, expected {expected}"
    return Failure(text, str(where), f"{what} {expected}", f"{what} {found}")


def compare(record: OpRecord, found: Any, expected: Any, where: Where | str) -> None:
    """Raises Failure when shapes, dtypes or values differ."""
    ours, theirs = _arrays(found), _flat(expected)
    if len(ours) != len(theirs):
        raise _differs(where, "number of results", len(theirs), len(ours))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape:
            raise _differs(where, f"shape of result {i}", b.shape, a.shape)
        if record.exact_dtype and a.dtype != b.dtype:
            raise _differs(where, f"dtype of result {i}", b.dtype, a.dtype)
        name = a.dtype.name
        rtol, atol = record.rtol.get(name, RTOL.get(name, 0)), record.atol.get(name, ATOL.get(name, 0))
        if not record.values or np.array_equal(a, b):  # much faster, and nearly always enough for integers
            continue
        try:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            text = f"{where}: result {i} differs: {error}"
            raise Failure(text, str(where), *told_apart(b, a)) from None


def _call(record: OpRecord, sample: Sample, device: str, **extra: Any) -> Any:
    args = [to_tensors(value, device) for value in sample.args]
    kwargs = {key: to_tensors(value, device) for key, value in sample.kwargs.items()}
    if record.creates:
        extra["device"] = device
    result = function_of(record)(*args, **kwargs, **extra)
    _check_rest(record, sample, args, kwargs, (result, device))
    return [args[i] for i in record.writes] if result is None else result


def _check_rest(record: OpRecord, sample: Sample, args: Any, kwargs: Any, result: tuple[Any, str]) -> None:
    """Arguments are as they were, results are on the device of the call."""
    if other := strayed(*result):
        raise _differs(Where(record, sample), "device of a result", result[1], other)
    read = lambda one: _arrays(one)[0]  # noqa: E731
    if changed := written_argument(record.writes, args, kwargs, (sample.args, sample.kwargs), read):
        name, before, now = changed
        where = str(Where(record, sample))
        text = f"{where}: {name} was written to: {brief(now)}, expected {brief(before)}"
        raise Failure(text, where, f"{name} unchanged: {brief(before)}", brief(now))


def _reference(record: OpRecord, sample: Sample) -> Any:
    with np.errstate(all="ignore"):
        return record.reference(*sample.args, **sample.kwargs)


def check_forward(record: OpRecord, sample: Sample, device: str = "cpu") -> None:
    """The operator against its reference, first argument in every memory layout.

    Raises:
        Failure: a difference; the text names operator, layout and input.
    """
    expected = _reference(record, sample)
    first = sample.args[0] if sample.args else None
    varied = isinstance(first, np.ndarray) and not record.row_major
    for layout, array in layouts(first) if varied else [("", first)]:
        given = Sample((array, *sample.args[1:]), sample.kwargs) if sample.args else sample
        where = Where(record, sample, f"{layout} ")
        compare(record, _call(record, given, device), expected, where)


def check_out(record: OpRecord, sample: Sample, device: str = "cpu") -> None:
    """The out= form writes the same values into the given tensor, also when that is strided."""
    expected = np.asarray(_reference(record, sample))
    shape = (*expected.shape[:-1], 2 * expected.shape[-1]) if expected.ndim else (1,)
    wide = to_tensors(np.zeros(shape, expected.dtype), device)
    for out in (to_tensors(np.zeros_like(expected), device), wide[..., ::2] if expected.ndim else wide[0]):
        returned = _call(record, sample, device, out=out)
        where = Where(record, sample, "out=, ")
        if returned is not out:
            raise Failure(f"{where}: returned another tensor", str(where), "out itself", "another tensor")
        compare(record, out, expected, where)


def check_in_place(record: OpRecord, sample: Sample, device: str = "cpu") -> None:
    """The in-place form stores the same values into its first argument and returns it."""
    expected = np.asarray(_reference(record, sample))
    first = sample.args[0]
    if (
        not isinstance(first, np.ndarray)
        or expected.shape != first.shape
        or not np.can_cast(expected.dtype, first.dtype, "same_kind")
    ):
        return
    target = to_tensors(first, device)
    rest = [to_tensors(value, device) for value in sample.args[1:]]
    returned = getattr(target, record.name + "_")(*rest, **sample.kwargs)
    others = Sample((None, *sample.args[1:]))
    _check_rest(record, others, [None, *rest], {}, (returned, device))
    where = Where(record, sample, suffix="_")
    if returned is not target:
        raise Failure(f"{where}: returned another tensor", str(where), "the tensor itself", "another tensor")
    compare(record, target, expected.astype(first.dtype), where)


def check_error(record: OpRecord, wrong: ErrorSample, device: str = "cpu") -> None:
    """A wrong call ends in the expected exception, whose text has the expected words."""
    where = f"{record.name} ({describe(wrong)})"
    kinds = wrong.error if isinstance(wrong.error, tuple) else (wrong.error,)
    names = " or ".join(kind.__name__ for kind in kinds)
    wanted = f"{names} with the words {list(wrong.words)}"
    try:
        result = _call(record, Sample(wrong.args, wrong.kwargs), device)
        _arrays(result)  # an asynchronous device complains when the result is read
    except kinds as error:
        if all(word in str(error) for word in wrong.words):
            return
        text = f"{where}: the text of {error!r} lacks some of {list(wrong.words)}"
        raise Failure(text, where, wanted, repr(error)) from error
    raise Failure(f"{where}: no error, expected {wanted}", where, wanted, f"a result: {result!r}")


@dataclass(frozen=True)
class Place:
    """Where a tensor stands in a call: the position of its argument, and its number if that is a list."""

    argument: int
    item: int | None = None

    def __str__(self) -> str:
        return f"argument {self.argument}" + ("" if self.item is None else f", item {self.item}")

    def of(self, args: Sequence[Any]) -> Any:
        """What stands there."""
        value = args[self.argument]
        return value if self.item is None else value[self.item]

    def put(self, args: list[Any], value: Any) -> None:
        """Stores `value` there; a list is replaced, not changed."""
        if self.item is None:
            args[self.argument] = value
        else:
            items = list(args[self.argument])
            items[self.item] = value
            args[self.argument] = items


def differentiated(record: OpRecord, sample: Sample) -> list[Place]:
    """The arguments, and items of arguments that are lists, that gradients are taken of."""
    places = []
    for i, value in enumerate(sample.args):
        if i in record.constant:
            continue
        if isinstance(value, (list, tuple)):
            places += [Place(i, k) for k in range(len(value)) if _is_inexact(value[k])]
        elif _is_inexact(value):
            places.append(Place(i))
    return places


def _is_inexact(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def weights_like(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Random weights of an array's shape, complex for a complex one."""
    real = rng.standard_normal(array.shape)
    return np.asarray(real + 1j * rng.standard_normal(array.shape) if array.dtype.kind == "c" else real)


def weighted_sum(results: Sequence[Any], weights: Sequence[np.ndarray], device: str = "cpu") -> Any:
    """The real number whose gradient by a complex result is the weight: the real part of sum(conj(w) r)."""
    parts = [(r * to_tensors(w.conj(), device)).sum() for r, w in zip(results, weights, strict=True)]
    return sum(part.real if part.is_complex() else part for part in parts)


def steps_of(array: np.ndarray) -> tuple[complex, ...]:
    """The directions in which differences are taken: the real one, and for complex numbers the imaginary one."""
    return (1, 1j) if array.dtype.kind == "c" else (1,)


def check_gradient(
    record: OpRecord,
    sample: Sample,
    seed: int = 0,
    step: float = 1e-6,
    tolerance: float = 2e-5,
    device: str = "cpu",
) -> None:
    """Reverse-mode gradients against central differences of the operator's own forward, in float64 or complex128.

    Raises:
        Failure: a difference; the text names the argument.
    """
    rng = np.random.default_rng(seed)
    function = function_of(record)
    places = differentiated(record, sample)
    args = [to_tensors(value, device) for value in sample.args]
    kwargs = {key: to_tensors(value, device) for key, value in sample.kwargs.items()}
    for place in places:
        place.of(args).requires_grad_(True)
    results = function(*args, **kwargs)
    outputs = [r for r in (results if isinstance(results, (list, tuple)) else [results]) if r.requires_grad]
    if not outputs:
        where = f"{record.name} ({describe(sample)})"
        raise Failure(f"{where}: no result requires grad", where, "a result with history", "none")
    weights = [weights_like(rng, _arrays(r)[0]) for r in outputs]
    weighted_sum(outputs, weights, device).backward()
    _check_rest(record, sample, args, kwargs, (results, device))
    chosen = (
        [i for i, r in enumerate(results) if r.requires_grad] if isinstance(results, (list, tuple)) else None
    )

    def loss(values: list[Any]) -> float:
        found = function(*[to_tensors(v, device) for v in values], **kwargs)
        arrays = [_arrays(found[i])[0] for i in chosen] if chosen is not None else _arrays(found)
        return float(sum((a * w.conj()).sum().real for a, w in zip(arrays, weights, strict=True)))

    for place in places:
        array = place.of(sample.args)
        numeric = np.zeros_like(array)
        for at, along in itertools.product(np.ndindex(numeric.shape), steps_of(array)):
            values = list(sample.args)
            ends = []
            for sign in (1, -1):
                moved = array.copy()
                moved[at] += sign * step * along
                place.put(values, moved)
                ends.append(loss(values))
            numeric[at] += (ends[0] - ends[1]) / (2 * step) * along
        numeric[sample.cut.get(place.argument, False)] = 0
        grad = place.of(args).grad
        found = np.zeros_like(numeric) if grad is None else grad.cpu().numpy()
        if not np.allclose(found, numeric, rtol=tolerance * 10, atol=tolerance, equal_nan=True):
            where = f"{record.name} (gradient of {place}, {describe(sample)})"
            text = f"{where} differs:\n{found}\nexpected\n{numeric}"
            raise Failure(text, where, *told_apart(numeric, found))


def describe(sample: Sample | ErrorSample) -> str:
    """Shapes and dtypes of a sample, and the values of small arrays."""

    def text(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return brief(value) if 0 < value.size <= 8 else f"{value.dtype}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(text(item) for item in value) + "]"
        return repr(value)

    parts = [text(value) for value in sample.args] + [f"{k}={text(v)}" for k, v in sample.kwargs.items()]
    return ", ".join(parts)
