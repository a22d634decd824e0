"""Records of pooling, window by window, with the places of maxima and the gradients that go there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, REALS, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import REFUSED, zeros

Places = list[tuple[int, int]]


def _record(name: str, reference: Any, samples: Any, namespace: str = "ops", errors: Any = ()) -> OpRecord:
    dtypes = REALS if "max" in name else FLOATS
    return OpRecord(name, reference, samples, dtypes, differentiable=True, namespace=namespace, errors=errors)


def pair(value: Any) -> tuple[int, int]:
    """One number for height and width, or two."""
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return items * 2 if len(items) == 1 else items


def _steps(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def windows(
    size: tuple[int, int],
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> tuple[tuple[int, int], Callable[[tuple[int, int]], tuple[Places, list[int], int]]]:
    """Output size; and for a position there the places in the input, their numbers in the window, and how many
    elements the window has with the padding."""
    k, p, d = pair(kernel), pair(padding), pair(dilation)
    t = pair(stride) if stride else k
    out = tuple(_steps(*each, ceil) for each in zip(size, k, t, p, d, strict=True))

    def at(place: tuple[int, int]) -> tuple[Places, list[int], int]:
        start = [a * step - pad for a, step, pad in zip(place, t, p, strict=True)]
        places, numbers, full = [], [], 1
        for i, j in np.ndindex(*k):
            h, w = start[0] + i * d[0], start[1] + j * d[1]
            if 0 <= h < size[0] and 0 <= w < size[1]:
                places.append((h, w))
                numbers.append(i * k[1] + j)
        for begin, n, s, pad in zip(start, k, size, p, strict=True):
            full *= min(begin + n, s + pad) - begin
        return places, numbers, full

    return (out[0], out[1]), at


def adaptive(size: tuple[int, int], output: Any) -> tuple[tuple[int, int], Callable[[Any], Any]]:
    """The same for nearly equal parts, as many as ``output`` says."""
    out = pair(output)

    def at(place: tuple[int, int]) -> tuple[Places, list[int], int]:
        rows, columns = (
            range(a * s // o, -(-(a + 1) * s // o)) for a, s, o in zip(place, size, out, strict=True)
        )
        places = list(itertools.product(rows, columns))
        return places, list(range(len(places))), len(places)

    return (out[0], out[1]), at


def _first_largest(values: list[Any]) -> int:
    best = 0
    for i, value in enumerate(values):
        best = i if value > values[best] or (np.isnan(value) and not np.isnan(values[best])) else best
    return best


def maxima(geometry: Any, kind: str) -> Callable[..., Any]:
    """Maxima and, of this kind, their ``indices`` in the plane or ``offsets`` in the window; "" for values alone."""

    def call(x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        out, at = geometry(x.shape[-2:], *args, **kwargs)
        values = np.empty((*x.shape[:-2], *out), x.dtype)
        places = np.empty(values.shape, np.uint8 if kind == "offsets" else np.int64)
        for *plane, h, w in np.ndindex(values.shape):
            where, numbers, _ = at((h, w))
            best = _first_largest([x[(*plane, *place)] for place in where])
            index = where[best][0] * x.shape[-1] + where[best][1]
            values[(*plane, h, w)] = x[(*plane, *where[best])]
            places[(*plane, h, w)] = numbers[best] if kind == "offsets" else index
        return (values, places) if kind else values

    return call


def _average(x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    out, at = windows(x.shape[-2:], kernel, stride, padding, 1, ceil_mode)
    values = np.empty((*x.shape[:-2], *out), x.dtype)
    for h, w in np.ndindex(*out):
        places, _, full = at((h, w))
        share = divisor_override or (full if count_include_pad else len(places))
        values[..., h, w] = sum(x[(..., *place)].astype(np.float64) for place in places) / share
    return values


def _adaptive_average(x: np.ndarray, output: Any) -> np.ndarray:
    out, at = adaptive(x.shape[-2:], output)
    values = np.empty((*x.shape[:-2], *out), x.dtype)
    for h, w in np.ndindex(*out):
        places = at((h, w))[0]
        values[..., h, w] = sum(x[(..., *place)].astype(np.float64) for place in places) / len(places)
    return values


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same over one dimension: a height of one."""

    def widened(name: str, value: Any) -> Any:
        first = 0 if name == "padding" else 1
        return (first, *value) if isinstance(value, tuple) and value else value

    names = ("kernel_size", "stride", "padding", "dilation")

    def call(x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        lists = [widened(name, value) for name, value in zip(names, args, strict=False)]
        found = function(x[..., None, :], *lists, *args[len(names) :], **kwargs)
        return tuple(part[..., 0, :] for part in found) if isinstance(found, tuple) else found[..., 0, :]

    return call


_PLANES = (
    ((1, 1, 4, 4), (2, 2)),
    ((2, 3, 7, 6), (3, 2), (2, 1), (1, 0)),
    ((3, 5, 5), (2,)),
    ((0, 2, 4, 4), (2, 2)),
    ((2, 8, 6, 6), (3, 3), (2, 2), (1, 1)),
)

_DILATED = (((1, 2, 6, 5), (2, 2), (), (1, 1), (2, 1)), ((1, 1, 5, 6), (2, 3), (2, 2), (0, 1), (1, 2), True))

_LINES = (((2, 3, 8), (2,)), ((1, 2, 7), (3,), (2,), (1,)), ((3, 5), (2,), (1,)))

_AVERAGED = (
    ((1, 2, 5, 4), (3, 2), (2, 2), (1, 0), True),
    ((1, 2, 5, 4), (3, 2), (2, 2), (1, 1), True, False),
    ((2, 4, 5), (2, 3), (), (0, 1), False, False, 5),
)

_PARTS = (
    ((1, 2, 4, 4), (1, 1)),
    ((2, 3, 7, 5), (3, 2)),
    ((1, 1, 2, 3), (4, 5)),
    ((0, 1, 2, 2), (1,)),
)


def samples_of(*calls: tuple[Any, ...], special: tuple[Any, ...] = ()) -> Any:
    """Images of the first shape of each call; ``special`` is a call with NaN, least and equal elements too."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *rest in calls:
            yield Sample((random_array(rng, shape, dtype), *rest))
        least = -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
        for value in (least, 1, np.nan) if special else ():
            if np.isnan(value) and np.dtype(dtype).kind != "f":
                continue
            shape, *rest = special
            x = np.full(shape, least if value == least else 1, dtype)
            x.flat[-1] = value
            yield Sample((x, *rest), note="special values")

    return samples


_MAXIMA = samples_of(*_PLANES, *_DILATED, special=((1, 3, 3), (2, 2), (1, 1), (1, 1)))

_MAXIMA1D = samples_of(
    *_LINES, ((2, 2, 9), (3,), (2,), (1,), (2,)), ((1, 1, 6), (3,), (2,), (0,), (1,), True)
)

_MEANS1D = samples_of(*_LINES, ((1, 2, 6), (3,), (2,), (1,), True, False))


def _volume_ranges(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> Any:
    """For each dimension and window: the places inside, and how many there are with the padding."""
    k, p, d = (tuple(v) * (3 // len(v)) for v in (kernel, padding, dilation))
    steps = tuple(stride) * (3 // len(stride)) if stride else k
    for n, kernel_, step, pad, wide in zip(size, k, steps, p, d, strict=True):
        count = _steps(n, kernel_, step, pad, wide, ceil)
        starts = [i * step - pad for i in range(count)]
        inside = [[a + j * wide for j in range(kernel_) if 0 <= a + j * wide < n] for a in starts]
        yield inside, [min(a + kernel_, n + pad) - a for a in starts]


def _volume_parts(size: Any, output: Any) -> Any:
    for n, out in zip(size, tuple(output) * (3 // len(output)), strict=True):
        inside = [list(range(i * n // out, -(-(i + 1) * n // out))) for i in range(out)]
        yield inside, [len(part) for part in inside]


def _cells(ranges: Any) -> Iterator[tuple[Any, list[Any], int]]:
    """Positions of the result, the places in the volume that each covers, and their number with the padding."""
    for at in np.ndindex(*(len(inside) for inside, _ in ranges)):
        places = list(itertools.product(*(inside[i] for i, (inside, _) in zip(at, ranges, strict=True))))
        yield at, places, int(np.prod([full[i] for i, (_, full) in zip(at, ranges, strict=True)]))


def _volume_maxima(x: np.ndarray, ranges: Any) -> tuple[np.ndarray, np.ndarray]:
    ranges = list(ranges)
    values = np.empty((*x.shape[:-3], *(len(inside) for inside, _ in ranges)), x.dtype)
    indices = np.empty(values.shape, np.int64)
    for at, places, _ in _cells(ranges):
        for lead in np.ndindex(*x.shape[:-3]):
            best = places[_first_largest([x[(*lead, *place)] for place in places])]
            values[(*lead, *at)] = x[(*lead, *best)]
            indices[(*lead, *at)] = np.ravel_multi_index(best, x.shape[-3:])
    return values, indices


def _volume_means(x: np.ndarray, ranges: Any, padding_counts: bool, divisor: int | None) -> np.ndarray:
    ranges = list(ranges)
    values = np.empty((*x.shape[:-3], *(len(inside) for inside, _ in ranges)), x.dtype)
    for at, places, full in _cells(ranges):
        total = sum(x[(..., *place)].astype(np.float64) for place in places)
        values[(..., *at)] = total / (divisor or (full if padding_counts else len(places)))
    return values


def _max3d(x, kernel, stride=(), padding=(0,), dilation=(1,), ceil=False):
    return _volume_maxima(x, _volume_ranges(x.shape[-3:], kernel, stride, padding, dilation, ceil))


def _average3d(x, kernel, stride=(), padding=(0,), ceil=False, padding_counts=True, divisor=None):
    ranges = _volume_ranges(x.shape[-3:], kernel, stride, padding, (1,), ceil)
    return _volume_means(x, ranges, padding_counts, divisor)


_VOLUMES = (
    ((1, 2, 4, 4, 4), (2,)),
    ((2, 1, 5, 4, 3), (3, 2, 2), (2, 1, 1), (1, 0, 1)),
    ((2, 3, 4, 5), (2, 2, 3)),
    ((0, 1, 3, 3, 3), (2,)),
    ((1, 1, 3, 5, 4), (1, 3, 2), (1, 2, 1)),
)

_VOLUME_WINDOWS = (
    ((1, 2, 5, 6, 4), (2, 2, 2), (1,), (1, 1, 1), (2, 1, 2)),
    ((1, 1, 4, 5, 5), (2, 3, 2), (2,), (0, 1, 0), (1,), True),
)

_VOLUME_AVERAGES = (
    ((1, 2, 4, 5, 4), (3, 2, 2), (2,), (1, 0, 1), True),
    ((1, 1, 5, 4, 3), (2, 2, 2), (2,), (1,), True, False),
    ((2, 3, 4, 5), (2, 1, 3), (), (0, 0, 1), False, False, 5),
)

_VOLUME_PARTS = (((1, 2, 4, 3, 5), (2, 1, 3)), ((2, 5, 4, 3), (2,)), ((1, 1, 2, 3, 2), (3, 4, 2)))


def _line(argument: Any, words: tuple[str, ...], shape: tuple[int, ...] = (1, 1, 4, 4)) -> ErrorSample:
    return ErrorSample((np.zeros(shape, np.float32), *argument), {}, REFUSED, words)


_ERRORS = (
    _line(((3, 3), (1, 1), (2, 2)), ("padding", "2")),
    _line(((5, 5),), ("kernel_size", "5")),
    _line(((2, 2), (0, 1)), ("stride", "0")),
    _line(((2, 2, 2),), ("kernel_size", "3")),
    _line(((2, 2),), ("input", "4"), (4, 4)),
)

_ERRORS3D = (
    _line(((3, 3, 3), (1,), (2,)), ("padding", "2"), (1, 1, 4, 4, 4)),
    _line(((5, 5, 5),), ("kernel_size", "5"), (1, 1, 4, 4, 4)),
    _line(((2, 2),), ("kernel_size", "2"), (1, 1, 4, 4, 4)),
    _line(((2,),), ("input", "4"), (4, 4)),
    _line(((2,),), ("input", "0"), (1, 1, 0, 4, 4)),
)

_ERRORS_OF_PARTS3D = (
    _line(((2, 2),), ("output_size", "2"), (1, 1, 4, 4, 4)),
    _line(((2, -3, 1),), ("output_size", "-3"), (1, 1, 4, 4, 4)),
)

_ERRORS1D = (_line(((5,),), ("kernel_size", "5"), (1, 1, 4)), _line(((2,),), ("input", "4"), (4,)))

_ERRORS_OF_PARTS1D = (
    _line(((2, 2),), ("output_size", "2"), (1, 1, 4)),
    _line(((-3,),), ("output_size", "-3"), (1, 1, 4)),
)

_ERRORS_OF_PARTS = (_line(((2, 2, 2),), ("output_size", "3")), _line(((2, -3),), ("output_size", "-3")))


def _average_backward(
    grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
) -> np.ndarray:
    out, at = windows(x.shape[-2:], kernel, stride, padding, 1, ceil_mode)
    given = np.zeros(x.shape)
    for h, w in np.ndindex(*out):
        places, _, full = at((h, w))
        share = divisor_override or (full if count_include_pad else len(places))
        for place in places:
            given[(..., *place)] += grad[..., h, w] / share
    return given.astype(grad.dtype)


def _adaptive_average_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    out, at = adaptive(x.shape[-2:], grad.shape[-2:])
    given = np.zeros(x.shape)
    for h, w in np.ndindex(*out):
        places = at((h, w))[0]
        for place in places:
            given[(..., *place)] += grad[..., h, w] / len(places)
    return given.astype(grad.dtype)


def _scattered(grad: np.ndarray, x: np.ndarray, *rest: Any) -> np.ndarray:
    """Adds every element of grad to its index in the plane, the last argument."""
    given = np.zeros((*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    for *plane, h, w in np.ndindex(grad.shape):
        given[(*plane, rest[-1][(*plane, h, w)])] += grad[(*plane, h, w)]
    return given.reshape(x.shape).astype(grad.dtype)


def _chosen(x: np.ndarray, *rest: Any) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Output positions, and the input positions that the offsets, the last argument, name."""
    *geometry, offsets = rest
    at = windows(x.shape[-2:], *geometry)[1]
    for *plane, h, w in np.ndindex(offsets.shape):
        places, numbers, _ = at((h, w))
        yield (*plane, h, w), (*plane, *places[numbers.index(offsets[(*plane, h, w)])])


def _offset_backward(grad: np.ndarray, x: np.ndarray, *rest: Any) -> np.ndarray:
    given = np.zeros(x.shape)
    for outer, inner in _chosen(x, *rest):
        given[inner] += grad[outer]
    return given.astype(grad.dtype)


def _offset_pick(x: np.ndarray, *rest: Any) -> np.ndarray:
    out = np.empty(rest[-1].shape, x.dtype)
    for outer, inner in _chosen(x, *rest):
        out[outer] = x[inner]
    return out


_MAXIMA_BACKWARD = (
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 5, 6), (3, 2), (2, 1), (1, 0), (1, 2), False),
    ((1, 2, 5, 4), (2,), (), (1,), (1,), True),
    ((0, 1, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1), False),
)

_MEANS_BACKWARD = (
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0), False, True, None),
    ((2, 5, 4), (3, 2), (2, 1), (1, 0), True, True, None),
    ((1, 2, 5, 4), (3, 2), (2, 2), (1, 1), True, False, None),
    ((1, 1, 3, 4), (2,), (), (0,), False, False, 3),
)

_PARTS_BACKWARD = (
    ((1, 2, 4, 4), (1, 1)),
    ((2, 5, 7), (2, 3)),
    ((1, 1, 2, 3), (4, 5)),
    ((0, 1, 2, 2), (1, 1)),
)


def _picked(kind: str, picks: bool = False) -> Any:
    """Gradients, or for a pick the input alone, with the places that the maxima of the input have."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *rest in _MAXIMA_BACKWARD:
            x = random_array(rng, shape, dtype)
            places = maxima(windows, kind)(x, *rest)[1]
            grad = [] if picks else [random_array(rng, places.shape, dtype)]
            yield Sample((*grad, x, *rest, places))

    return samples


def _averaged(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, *rest in _MEANS_BACKWARD:
        x = random_array(rng, shape, dtype)
        out = windows(shape[-2:], *rest[:3], 1, rest[3])[0]
        yield Sample((random_array(rng, (*shape[:-2], *out), dtype), x, *rest))


def _parts(places: bool) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, size in _PARTS_BACKWARD:
            x, grad = random_array(rng, shape, dtype), random_array(rng, (*shape[:-2], *size), dtype)
            yield Sample((grad, x, *([maxima(adaptive, "indices")(x, size)[1]] if places else [])))

    return samples


def _backward(name: str, reference: Any, samples: Any, *wrong: Any, errors: Any = ()) -> OpRecord:
    if wrong:
        errors = (ErrorSample(wrong, {}, REFUSED, (name, "grad")), *errors)
    return OpRecord(name, reference, samples, FLOATS, differentiable=True, namespace="ops", errors=errors)


_INCOMING, _INPUT = zeros(1, 3, 3), zeros(1, 4, 4)

_WINDOW = ((2, 2), (2, 2), (0, 0), (1, 1), False)

_PLACES = ErrorSample(
    (zeros(1, 2, 2), _INPUT, *_WINDOW, zeros(1, 1, 1, dtype=np.int64)), {}, REFUSED, ("indices", "(1, 1, 1)")
)

_OFFSETS = ErrorSample(
    (zeros(1, 2, 2), _INPUT, *_WINDOW, zeros(1, 1, 1, dtype=np.uint8)), {}, REFUSED, ("offsets", "(1, 1, 1)")
)

_OUTSIDE = ErrorSample((_INPUT, *_WINDOW, np.full((1, 2, 2), 200, np.uint8)), {}, (*REFUSED, IndexError), ())


RECORDS = [
    _record("max_pool1d", _flat(maxima(windows, "")), _MAXIMA1D, "", _ERRORS1D),
    _record("max_pool1d_with_indices", _flat(maxima(windows, "indices")), _MAXIMA1D, "", _ERRORS1D),
    _record(
        "max_pool2d",
        maxima(windows, ""),
        samples_of(*_PLANES, *_DILATED, ((1, 18, 17), (17, 16), (1, 1))),
        "",
        _ERRORS,
    ),
    _record("max_pool2d_with_indices", maxima(windows, "indices"), _MAXIMA, "", _ERRORS),
    _record(
        "max_pool2d_with_offsets",
        maxima(windows, "offsets"),
        _MAXIMA,
        errors=(*_ERRORS, _line(((16, 16),), ("kernel_size", "255"), (1, 16, 16))),
    ),
    _record("avg_pool1d", _flat(_average), _MEANS1D, "", _ERRORS1D),
    _record(
        "avg_pool2d",
        _average,
        samples_of(*_PLANES, *_AVERAGED),
        "",
        (*_ERRORS, _line(((2, 2), (), (0,), False, True, 0), ("divisor_override", "0"))),
    ),
    _record(
        "adaptive_avg_pool1d",
        _flat(_adaptive_average),
        samples_of(((2, 3, 7), (3,)), ((2, 4), (1,))),
        "",
        _ERRORS_OF_PARTS1D,
    ),
    _record("adaptive_avg_pool2d", _adaptive_average, samples_of(*_PARTS), errors=_ERRORS_OF_PARTS),
    _record(
        "adaptive_max_pool1d",
        _flat(maxima(adaptive, "indices")),
        samples_of(((2, 3, 7), (3,)), ((2, 4), (1,))),
        "",
        _ERRORS_OF_PARTS1D,
    ),
    _record(
        "adaptive_max_pool2d",
        maxima(adaptive, "indices"),
        samples_of(*_PARTS, special=((1, 3, 3), (2, 2))),
        errors=_ERRORS_OF_PARTS,
    ),
    _record("max_pool3d", lambda *a: _max3d(*a)[0], samples_of(*_VOLUMES, *_VOLUME_WINDOWS), "", _ERRORS3D),
    _record(
        "max_pool3d_with_indices",
        _max3d,
        samples_of(*_VOLUMES, *_VOLUME_WINDOWS, special=((1, 3, 3, 3), (2,), (1,), (1,))),
        errors=_ERRORS3D,
    ),
    _record(
        "avg_pool3d",
        _average3d,
        samples_of(*_VOLUMES, *_VOLUME_AVERAGES),
        errors=(
            *_ERRORS3D,
            _line(((2,), (), (0,), False, True, 0), ("divisor_override", "0"), (1, 1, 4, 4, 4)),
        ),
    ),
    _record(
        "adaptive_avg_pool3d",
        lambda x, out: _volume_means(x, _volume_parts(x.shape[-3:], out), False, None),
        samples_of(*_VOLUME_PARTS),
        errors=_ERRORS_OF_PARTS3D,
    ),
    _record(
        "adaptive_max_pool3d",
        lambda x, out: _volume_maxima(x, _volume_parts(x.shape[-3:], out)),
        samples_of(*_VOLUME_PARTS),
        errors=_ERRORS_OF_PARTS3D,
    ),
    _backward(
        "adaptive_avg_pool2d_backward", _adaptive_average_backward, _parts(False), zeros(2, 2, 2), _INPUT
    ),
    _backward(
        "adaptive_max_pool2d_backward",
        _scattered,
        _parts(True),
        zeros(2, 2, 2),
        _INPUT,
        zeros(2, 2, 2, dtype=np.int64),
    ),
    _backward(
        "avg_pool2d_backward",
        _average_backward,
        _averaged,
        _INCOMING,
        _INPUT,
        *_WINDOW[:3],
        False,
        True,
        None,
    ),
    _backward(
        "max_pool2d_backward",
        _offset_backward,
        _picked("offsets"),
        _INCOMING,
        _INPUT,
        *_WINDOW,
        zeros(1, 3, 3, dtype=np.uint8),
        errors=(_OFFSETS,),
    ),
    _backward("max_pool2d_pick", _offset_pick, _picked("offsets", True), errors=(_OUTSIDE,)),
    _backward(
        "max_pool2d_with_indices_backward",
        _scattered,
        _picked("indices"),
        _INCOMING,
        _INPUT,
        *_WINDOW,
        zeros(1, 3, 3, dtype=np.int64),
        errors=(_PLACES,),
    ),
]
