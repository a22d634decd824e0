"""Records of linear layers, embedding and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample

_GRAD = ("float64",)
_TOLERANCE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-4, "complex64": 1e-4}}


def _record(name, reference, samples, namespace="", **more):
    return OpRecord(
        name,
        reference,
        samples,
        FLOATS_AND_COMPLEX,
        _GRAD,
        namespace=namespace,
        family="layers",
        **_TOLERANCE,
        **more,
    )


def _linear(x, w, bias=None):
    return np.asarray(widest(x) @ w.T + (0 if bias is None else bias)).astype(x.dtype)


def _linear_backward(grad, x, w, output_mask=7):
    rows, inputs = (widest(np.reshape(a, (-1, a.shape[-1]))) for a in (grad, x))
    results = (np.asarray(grad @ w), rows.T @ inputs, rows.sum(0))
    return tuple(array.astype(x.dtype) for array in results)


def _embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    out = np.zeros((num_weights, grad.shape[-1]), widest(grad).dtype)
    for at in np.ndindex(indices.shape):
        row = indices[at]
        if row != padding_idx:
            out[row] += grad[at] / (np.sum(indices == row) if scale_grad_by_freq else 1)
    return out.astype(grad.dtype)


def _lines(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for x, w in (
        ((3, 4), (5, 4)),
        ((4,), (2, 4)),
        ((2, 3, 4), (1, 4)),
        ((0, 4), (2, 4)),
        ((33, 70), (40, 70)),
    ):
        for bias in (None, random_array(rng, (w[0],), dtype)):
            yield Sample((random_array(rng, x, dtype), random_array(rng, w, dtype), bias))
    yield Sample((random_array(rng, (2, 3), dtype), random_array(rng, (3,), dtype)))


def _line_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for lead in ((3,), (), (2, 3), (0,)):
        shapes = ((*lead, 2), (*lead, 4), (2, 4))
        yield Sample(tuple(random_array(rng, shape, dtype) for shape in shapes))


def _rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for size in ((5,), (2, 3), (), (0,)):
        yield Sample((random_array(rng, (7, 4), dtype), rng.integers(0, 7, size)))


def _padded_rows(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """The padded row is looked up like any other and gets no gradient."""
    for padding in (1, 0):
        table, rows = random_array(rng, (4, 3), dtype), np.array([[1, 2, 0], [3, 1, 1]])
        cut = np.zeros((4, 3), bool)
        cut[padding] = True
        yield Sample((table, rows, padding), cut={0: cut})


def _row_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for size in ((5,), (2, 3), (), (0,)):
        rows, grad = rng.integers(0, 3, size), random_array(rng, (*size, 2), dtype)
        for padding, scaled in ((-1, False), (1, False), (-1, True), (0, True)):
            yield Sample((grad, rows, 4, padding, scaled))


def _zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def _errors(*calls):
    """Calls, and the words of their messages."""
    kinds = (IndexError, RuntimeError, ValueError)
    return tuple(ErrorSample(args, {}, kinds, words) for args, words in calls)


_LINEAR = _errors(
    ((_zeros(2, 3), _zeros(5, 3), _zeros(4)), ("linear", "bias", "4", "5")),
    ((_zeros(2, 3), _zeros(2, 5, 3)), ("linear", "weight")),
)
_LINEAR_BACKWARD = _errors(
    ((_zeros(2, 3), _zeros(3, 4), _zeros(3, 4)), ("linear_backward", "grad", "(2, 3)")),
    ((_zeros(2, 2), _zeros(2, 4), _zeros(3, 4)), ("linear_backward", "grad", "(2, 2)")),
)
_EMBEDDING = _errors(
    ((_zeros(3, 2), np.int64([-1])), ("-1",)),
    ((_zeros(3, 2), _zeros(2)), ("embedding", "indices", "float32")),
    ((_zeros(3), np.int64([1])), ("embedding", "weight")),
)
_EMBEDDING_BACKWARD = _errors(
    ((_zeros(1, 2), np.int64([4]), 4, -1, False), ("4",)),
    ((_zeros(2, 2), np.int64([0]), 4, -1, False), ("embedding_backward", "grad")),
)

RECORDS = [
    _record("linear", _linear, _lines, "ops", out=True, errors=_LINEAR),
    _record("linear_backward", _linear_backward, _line_gradients, "ops", errors=_LINEAR_BACKWARD),
    _record("embedding", lambda w, i: w[i], _rows, errors=_EMBEDDING),
    _record("embedding", lambda w, i, padding: w[i], _padded_rows),
    _record("embedding_backward", _embedding_backward, _row_gradients, "ops", errors=_EMBEDDING_BACKWARD),
]
