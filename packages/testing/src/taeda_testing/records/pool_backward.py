"""Records of the gradients of pooling, and of picking the elements that a pooling has picked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.records.pool import adaptive, maxima, windows

_WRONG = (RuntimeError, ValueError)


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


_MAXIMA = (
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 5, 6), (3, 2), (2, 1), (1, 0), (1, 2), False),
    ((1, 2, 5, 4), (2,), (), (1,), (1,), True),
    ((0, 1, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1), False),
)
_MEANS = (
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0), False, True, None),
    ((2, 5, 4), (3, 2), (2, 1), (1, 0), True, True, None),
    ((1, 2, 5, 4), (3, 2), (2, 2), (1, 1), True, False, None),
    ((1, 1, 3, 4), (2,), (), (0,), False, False, 3),
)
_PARTS = (((1, 2, 4, 4), (1, 1)), ((2, 5, 7), (2, 3)), ((1, 1, 2, 3), (4, 5)), ((0, 1, 2, 2), (1, 1)))


def _picked(kind: str, picks: bool = False) -> Any:
    """Gradients, or for a pick the input alone, with the places that the maxima of the input have."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *rest in _MAXIMA:
            x = random_array(rng, shape, dtype)
            places = maxima(windows, kind)(x, *rest)[1]
            grad = [] if picks else [random_array(rng, places.shape, dtype)]
            yield Sample((*grad, x, *rest, places))

    return samples


def _averaged(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, *rest in _MEANS:
        x = random_array(rng, shape, dtype)
        out = windows(shape[-2:], *rest[:3], 1, rest[3])[0]
        yield Sample((random_array(rng, (*shape[:-2], *out), dtype), x, *rest))


def _parts(places: bool) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, size in _PARTS:
            x, grad = random_array(rng, shape, dtype), random_array(rng, (*shape[:-2], *size), dtype)
            yield Sample((grad, x, *([maxima(adaptive, "indices")(x, size)[1]] if places else [])))

    return samples


def _zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def _record(name: str, reference: Any, samples: Any, *wrong: Any) -> OpRecord:
    errors = (ErrorSample(wrong, {}, _WRONG, (name, "grad")),) if wrong else ()
    return OpRecord(
        name, reference, samples, FLOATS, ("float64",), namespace="ops", errors=errors, family="pool"
    )


_GRAD, _INPUT = _zeros(1, 3, 3), _zeros(1, 4, 4)
_WINDOW = ((2, 2), (2, 2), (0, 0), (1, 1), False)

_PLACES = ErrorSample(
    (_zeros(1, 2, 2), _INPUT, *_WINDOW, _zeros(1, 1, 1, dtype=np.int64)), {}, _WRONG, ("indices", "(1, 1, 1)")
)
_OFFSETS = ErrorSample(
    (_zeros(1, 2, 2), _INPUT, *_WINDOW, _zeros(1, 1, 1, dtype=np.uint8)), {}, _WRONG, ("offsets", "(1, 1, 1)")
)
_OUTSIDE = ErrorSample((_INPUT, *_WINDOW, np.full((1, 2, 2), 200, np.uint8)), {}, (*_WRONG, IndexError), ())

RECORDS = [
    _record(
        "adaptive_avg_pool2d_backward", _adaptive_average_backward, _parts(False), _zeros(2, 2, 2), _INPUT
    ),
    _record(
        "adaptive_max_pool2d_backward",
        _scattered,
        _parts(True),
        _zeros(2, 2, 2),
        _INPUT,
        _zeros(2, 2, 2, dtype=np.int64),
    ),
    _record(
        "avg_pool2d_backward", _average_backward, _averaged, _GRAD, _INPUT, *_WINDOW[:3], False, True, None
    ),
    _record(
        "max_pool2d_backward",
        _offset_backward,
        _picked("offsets"),
        _GRAD,
        _INPUT,
        *_WINDOW,
        _zeros(1, 3, 3, dtype=np.uint8),
    ),
    _record("max_pool2d_pick", _offset_pick, _picked("offsets", True)),
    _record(
        "max_pool2d_with_indices_backward",
        _scattered,
        _picked("indices"),
        _GRAD,
        _INPUT,
        *_WINDOW,
        _zeros(1, 3, 3, dtype=np.int64),
    ),
]
_ADDED = {
    "max_pool2d_with_indices_backward": _PLACES,
    "max_pool2d_backward": _OFFSETS,
    "max_pool2d_pick": _OUTSIDE,
}
RECORDS = [replace(r, errors=(*r.errors, _ADDED[r.name])) if r.name in _ADDED else r for r in RECORDS]
