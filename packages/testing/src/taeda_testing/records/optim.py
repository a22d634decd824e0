"""Records of optimizer steps over many tensors at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import OpRecord, Sample
from taeda_testing.wrong import REFUSED, wrong_call

_SHAPES = ((3,), (2, 3), (), (0, 2), (40,))


def _lists(rng: np.random.Generator, dtype: str, count: int) -> list[list[np.ndarray]]:
    """Lists of tensors of the shapes of the parameters; values of squares, so none is negative."""
    return [[random_array(rng, shape, dtype, 0, 2) for shape in _SHAPES] for _ in range(count)]


def _descents(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for momentum, dampening, decay, nesterov, maximize, first in (
        (0.0, 0.0, 0.0, False, False, False),
        (0.9, 0.0, 0.0, False, False, True),
        (0.9, 0.5, 0.0, False, True, False),
        (0.9, 0.0, 0.1, True, False, False),
    ):
        params, grads, buffers = _lists(rng, dtype, 3)
        rest = (0.1, momentum, dampening, decay, nesterov, maximize, first)
        yield Sample((params, grads, buffers if momentum else [], *rest))


def _sgd(params, grads, buffers, lr, momentum, dampening, decay, nesterov, maximize, first) -> Any:
    moved, kept = [], []
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        step = (-g if maximize else g) + decay * p
        if momentum:
            kept.append(step if first else momentum * buffers[i] + (1 - dampening) * step)
            step = step + momentum * kept[-1] if nesterov else kept[-1]
        moved.append(np.asarray(p - lr * step))
    return [[a.astype(params[0].dtype) for a in arrays] for arrays in (moved, kept)]


def _averages(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for decay, amsgrad, maximize, decoupled in (
        (0.0, False, False, False),
        (0.1, True, False, False),
        (0.1, False, True, True),
    ):
        params, grads, averages, squares, largest = _lists(rng, dtype, 5)
        steps = [*range(1, len(params) + 1)]
        rest = (0.1, 0.9, 0.99, 1e-3, decay, amsgrad, maximize, decoupled)
        yield Sample((params, grads, averages, squares, largest if amsgrad else [], steps, *rest))


def _adam(
    params, grads, averages, squares, largest, steps, lr, beta1, beta2, eps, decay, amsgrad, maximize, decoupled
) -> Any:  # fmt: skip
    results: list[list[np.ndarray]] = [[], [], [], []]
    for i, (p, g, t) in enumerate(zip(params, grads, steps, strict=True)):
        g = (-g if maximize else g) + (0 if decoupled else decay * p)
        p = p * (1 - lr * decay) if decoupled else p
        average, square = (
            averages[i] + (1 - beta1) * (g - averages[i]),
            beta2 * squares[i] + (1 - beta2) * g * g,
        )
        top = np.maximum(largest[i], square) if amsgrad else square
        size = np.sqrt(top) / np.sqrt(1 - beta2**t) + eps
        found = (p - lr / (1 - beta1**t) * average / size, average, square, *([top] if amsgrad else []))
        for kept, array in zip(results, found, strict=False):
            kept.append(np.asarray(array).astype(p.dtype))
    return results


_ONE, _TWO = np.zeros(1, np.float32), np.zeros(2, np.float32)

RECORDS = [
    OpRecord("_fused_sgd_", _sgd, _descents, namespace="ops", writes=(0, 2), behaviours=("fused sgd",), errors=(
        wrong_call(REFUSED, "_fused_sgd_ grads", [_ONE], [_TWO], [], 0.1, 0.0, 0.0, 0.0, False, False, True),
        wrong_call(REFUSED, "_fused_sgd_ momentum", [_ONE], [_ONE], [], 0.1, 0.9, 0.0, 0.0, False, False, True),
    )),
    OpRecord("_fused_adam_", _adam, _averages, namespace="ops", writes=(0, 2, 3, 4), behaviours=("fused adam",),
            errors=(
        wrong_call(REFUSED, "_fused_adam_ grads", [_ONE], [_TWO], [_ONE], [_ONE], [], [1], 0.1, 0.9, 0.9, 0.1, 0.0,
            False,
                   False, False),
    )),
]  # fmt: skip
