"""Records of distances between the rows of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import in_double, p_norm, random_array
from taeda_testing.record import FLOATS, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import REFUSED, misfit, zeros

_POWERS = (0.0, 1.0, 2.0, 2.5, np.inf)


def _distances(a: np.ndarray, b: np.ndarray, p: float = 2.0, mode: str | None = None) -> np.ndarray:
    differences = a[..., :, None, :] - b[..., None, :, :]
    if differences.shape[-1] == 0:
        return np.zeros(differences.shape[:-1])
    return p_norm(differences, p)


def _pairs(x: np.ndarray, p: float = 2.0) -> np.ndarray:
    first, second = np.triu_indices(len(x), 1)
    return _distances(x[first, None], x[second, None], p).reshape(-1)


def _backward(grad: np.ndarray, a: np.ndarray, b: np.ndarray, p: float, distances: np.ndarray) -> np.ndarray:
    """By the derivative of the norm, difference by difference."""
    d, far = a[..., :, None, :] - b[..., None, :, :], distances[..., None]
    with np.errstate(all="ignore"):
        if p == 0:
            slope = np.zeros_like(d)
        elif np.isinf(p):
            slope = np.sign(d) * (np.abs(d) == far)
        else:
            slope = np.where((far == 0) | (d == 0), 0, np.sign(d) * (np.abs(d) / far) ** (p - 1))
    return (grad[..., None] * slope).sum(-2)


_BATCHES = (((1, 4, 3), (1, 5, 3)), ((2, 3, 20), (2, 2, 20)), ((1, 0, 2), (1, 3, 2)), ((2, 2, 1), (2, 2, 1)))


def _two(shapes: Any, powers: Any) -> Any:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in shapes:
            for p in powers:
                yield Sample((random_array(rng, a, dtype), random_array(rng, b, dtype), *p))

    return samples


def _eighths(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers whose differences are exact in every dtype, so that the greatest one is known for sure."""
    return np.round(random_array(rng, shape, dtype) * 8) / 8


def _gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shapes in _BATCHES:
        for p in _POWERS:
            a, b = (_eighths(rng, shape, dtype) for shape in shapes)
            distances = _distances(a.astype(np.float64), b.astype(np.float64), p).astype(dtype)
            note = "there is no derivative, or none by the distance" if p == 0 or np.isinf(p) else ""
            yield Sample((random_array(rng, distances.shape, dtype), a, b, p, distances), {}, note)


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((4, 3), (2, 18), (1, 2), (0, 2)):
        for p in _POWERS:
            yield Sample((random_array(rng, shape, dtype), p))


def _record(name: str, reference: Any, samples: Any, namespace: str = "", **more: Any) -> OpRecord:
    tolerances = {"float32": 1e-4}
    facts = {"rtol": tolerances, "atol": tolerances, "half": "", "cancels": True, **more}
    return OpRecord(
        name, in_double(reference), samples, FLOATS, differentiable=True, namespace=namespace, **facts
    )


def _errors(name: str, *p: Any) -> tuple[ErrorSample, ...]:
    return (
        *misfit(name, (1, 2, 3), (1, 2, 4), *p, words=("x2", "4")),
        *misfit(name, (2,), (1, 2, 3), *p, words=("x1", "(2,)")),
    )


def _pair_gradients(grad: np.ndarray, x: np.ndarray, p: float, distances: np.ndarray) -> np.ndarray:
    given = np.zeros(x.shape)
    for k, (i, j) in enumerate(zip(*np.triu_indices(len(x), 1), strict=True)):
        above, far = grad[None, k, None], distances[None, k, None]
        given[i] += _backward(above, x[i : i + 1], x[j : j + 1], p, far)[0]
        given[j] += _backward(above, x[j : j + 1], x[i : i + 1], p, far)[0]
    return given


def _rows_with_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _rows(dtype, rng):
        p = sample.args[1]
        x = _eighths(rng, sample.args[0].shape, dtype)
        distances = _pairs(x.astype(np.float64), p).astype(dtype)
        yield Sample((random_array(rng, distances.shape, dtype), x, p, distances), {}, "pdist's gradient")


RECORDS = [
    _record(
        "cdist",
        _distances,
        _two(
            (((4, 3), (5, 3)), ((2, 1, 3, 4), (3, 2, 4)), ((0, 2), (3, 2)), ((30, 4), (3, 4))),
            [(p,) for p in _POWERS]
            + [(2.0, "use_mm_for_euclid_dist"), (2.0, "donot_use_mm_for_euclid_dist")],
        ),
        errors=(
            *_errors("cdist", 2.0),
            *misfit("cdist", (2, 3), (2, 3), -1.0, words=("p", "-1")),
            ErrorSample((zeros(2, 3), zeros(2, 3), 2.0, "fast"), {}, ValueError, ("compute_mode", "fast")),
        ),
    ),
    _record(
        "cdist_backward",
        _backward,
        _gradients,
        "ops",
        errors=misfit(
            "cdist_backward", (1, 2, 2), (1, 2, 3), (1, 3, 3), 2.0, (1, 2, 3), words=("grad", "(1, 2, 2)")
        ),
    ),
    _record(
        "cdist_forward",
        _distances,
        _two(_BATCHES, [(p,) for p in _POWERS]),
        "ops",
        errors=_errors("cdist_forward", 2.0),
    ),
    _record("euclidean_dist", _distances, _two(_BATCHES, [()]), "ops", errors=_errors("euclidean_dist")),
    _record(
        "pdist",
        _pairs,
        _rows,
        errors=(
            *misfit("pdist", (2, 3, 4), words=("input", "(2, 3, 4)")),
            ErrorSample((zeros(2, 3), -1.0), {}, REFUSED, ("pdist", "p", "-1")),
        ),
    ),
    _record(
        "pdist_backward",
        _pair_gradients,
        _rows_with_gradients,
        "ops",
        errors=misfit("pdist_backward", (5,), (2, 3), 2.0, (1,), words=("5",)),
    ),
    _record(
        "pdist_forward",
        _pairs,
        _rows,
        "ops",
        errors=misfit("pdist_forward", (2, 3, 4), 2.0, words=("input",)),
    ),
]
