"""Records of embedding and its gradient."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import in_double, p_norm, random_array, widest
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, ErrorSample, OpRecord, Sample
from taeda_testing.wrong import misfit, zeros

_NEAR = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-4, "complex64": 1e-4}}


def _layer(name, reference, samples, namespace="", **more):
    return OpRecord(
        name,
        reference,
        samples,
        FLOATS_AND_COMPLEX,
        differentiable=True,
        namespace=namespace,
        **_NEAR,
        **more,
    )


def _embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    out = np.zeros((num_weights, grad.shape[-1]), widest(grad).dtype)
    for at in np.ndindex(indices.shape):
        row = indices[at]
        if row != padding_idx:
            out[row] += grad[at] / (np.sum(indices == row) if scale_grad_by_freq else 1)
    return out.astype(grad.dtype)


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


def _errors(*calls):
    """Calls, and the words of their messages."""
    kinds = (IndexError, RuntimeError, ValueError)
    return tuple(ErrorSample(args, {}, kinds, words) for args, words in calls)


_EMBEDDING = _errors(
    ((zeros(3, 2), np.int64([-1])), ("-1",)),
    ((zeros(3, 2), zeros(2)), ("embedding", "indices", "float32")),
    ((zeros(3), np.int64([1])), ("embedding", "weight")),
)

_EMBEDDING_BACKWARD = _errors(
    ((zeros(1, 2), np.int64([4]), 4, -1, False), ("4",)),
    ((zeros(2, 2), np.int64([0]), 4, -1, False), ("embedding_backward", "grad")),
)


def _renormed(table, rows, max_norm, p):
    size = p_norm(table, p, keepdims=True)
    used = np.isin(np.arange(len(table)), rows)[:, None]
    return np.where(used & (size > max_norm), table * (max_norm / (size + 1e-7)), table)


def _tables(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for rows in (np.array([0, 2, 2]), np.array([[1], [3]]), np.zeros(0, np.int64)):
        for max_norm, p in ((1.0, 2.0), (0.5, 1.0), (2.0, np.inf)):
            yield Sample((random_array(rng, (4, 3), dtype), rows, max_norm, p))


def _bags(table, rows, offsets, by_freq=False, mode=0, sparse=False, factors=None, last=False, padding=None):
    ends = [*offsets, *([] if last else [len(rows)])]
    padding = None if padding is None else padding % len(table)
    bags = [[i for i in range(a, b) if rows[i] != padding] for a, b in itertools.pairwise(ends)]
    out = np.zeros((len(bags), table.shape[1]), table.dtype)
    owners, sizes = np.zeros(len(rows), np.int64), np.array([len(bag) for bag in bags], np.int64)
    chosen = np.zeros((len(bags), table.shape[1]) if mode == 2 else 0, np.int64)
    for b, (first, end) in enumerate(itertools.pairwise(ends)):
        owners[first:end] = b
        own = table[rows[bags[b]]].astype(np.float64)
        if not bags[b]:
            continue
        if mode == 2:
            chosen[b], out[b] = rows[bags[b]][own.argmax(0)], own.max(0)
        else:
            weights = np.ones(len(own)) if factors is None else factors[bags[b]]
            out[b] = (own * weights[:, None]).sum(0) / (len(own) if mode == 1 else 1)
    return out, owners, sizes, chosen


def _bag_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    rows = np.array([1, 3, 2, 2, 0, 3])
    for mode in (0, 1, 2):
        table = random_array(rng, (5, 3), dtype)
        yield Sample((table, rows, np.array([0, 2, 2, 5]), False, mode))
        yield Sample((table, rows, np.array([0, 4, 6]), False, mode, False, None, True))
        cut = np.zeros((5, 3), bool)
        cut[2] = True
        yield Sample((table, rows, np.array([0, 2, 4]), False, mode, False, None, False, 2), cut={0: cut})
        yield Sample((table, np.zeros(0, np.int64), np.array([0, 0]), False, mode))
    factors = random_array(rng, (6,), dtype)
    table = random_array(rng, (5, 3), dtype)
    yield Sample((table, rows, np.array([0, 3]), False, 0, False, factors))
    cut, out = np.zeros((5, 3), bool), rows == 2
    cut[2] = True
    yield Sample((table, rows, np.array([0, 3]), False, 0, False, factors, False, -3), cut={0: cut, 6: out})


_BAG_ERRORS = _errors(
    ((zeros(3, 2), np.int64([0, 3]), np.int64([0])), ("embedding_bag", "3")),
    ((zeros(3), np.int64([0]), np.int64([0])), ("embedding_bag", "weight")),
    ((zeros(3, 2), zeros(2), np.int64([0])), ("embedding_bag", "indices")),
    ((zeros(3, 2), np.int64([0, 1]), np.int64([1])), ("embedding_bag", "offsets", "1")),
    ((zeros(3, 2), np.int64([0, 1]), np.int64([0, 2, 1])), ("embedding_bag", "offsets", "1")),
    ((zeros(3, 2), np.int64([0, 1]), np.int64([0]), False, 3), ("embedding_bag", "mode", "3")),
    ((zeros(3, 2), np.int64([0, 1]), np.int64([0]), False, 1, False, zeros(2)), ("per_sample_weights",)),
    (
        (zeros(3, 2), np.int64([0, 1]), np.int64([0]), False, 0, False, zeros(3)),
        ("per_sample_weights", "(3,)"),
    ),
)

RECORDS = [
    _layer(
        "embedding",
        lambda w, i: w[i],
        _rows,
        errors=(
            *_EMBEDDING,
            *(ErrorSample((zeros(3, 2), np.int64([3])), {}, (IndexError, RuntimeError), ("3",)),),
        ),
    ),
    _layer("embedding", lambda w, i, padding: w[i], _padded_rows),
    _layer("embedding_backward", _embedding_backward, _row_gradients, "ops", errors=_EMBEDDING_BACKWARD),
    OpRecord("embedding_renorm_", in_double(_renormed), _tables, FLOATS, writes=(0,), errors=(
        *misfit("embedding_renorm_", (3,), np.zeros(2, np.int64), 1.0, 2.0, words=("self", "(3,)")),
        *misfit("", (3, 2), np.array([5]), 1.0, 2.0, error=IndexError, words=("5", "3")),
    )),
    OpRecord(
        "embedding_bag", _bags, _bag_samples, FLOATS, differentiable=True, errors=_BAG_ERRORS, half="largest", **_NEAR
    ),
]  # fmt: skip
