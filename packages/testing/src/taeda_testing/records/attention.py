"""Records of attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import in_double, random_array, widest
from taeda_testing.record import FLOATS, OpRecord, Sample
from taeda_testing.wrong import misfit, zeros


def _weights(q: Any, k: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Weights, 0 where a row sees nothing, and the logarithms of sums of exponentials."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(special.softmax(scores, -1))
    with np.errstate(divide="ignore"):
        return weights, special.logsumexp(scores, -1)


def _attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    return _weights(q, k, mask, is_causal, q.shape[-1] ** -0.5 if scale is None else scale)[0] @ v


def _queries(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for lead, n, m in (((), 3, 4), ((2,), 2, 2), ((2, 3), 4, 1), ((1, 2, 2), 2, 3)):
        q, k, v = (random_array(rng, (*lead, *size), dtype) for size in ((n, 5), (m, 5), (m, 2)))
        mask = random_array(rng, (n, m), "bool")
        mask[:, 0] = True
        yield Sample((q, k, v))
        yield Sample((q, k, v, mask))
        yield Sample((q, k, v, random_array(rng, (n, m), dtype)))
        yield Sample((q, k, v, None, 0.0, True), {"scale": 0.3})
    mask = np.array([[True, False, True], [False, False, False]])
    yield Sample((q[0, 0], k[0, 0], v[0, 0], mask), note="a row that sees nothing")
    q, k, v = (random_array(rng, (2, heads, 3, 4), dtype) for heads in (4, 2, 1))
    yield Sample((q, k, v), {"enable_gqa": True})
    yield Sample(
        (random_array(rng, (2, 3, 4), dtype), k[0, 0], v[0, 0]), note="leading dimensions that broadcast"
    )


def _fused(q, k, v, mask, is_causal, scale):
    wide, narrow = (widest(x) for x in (q, k, v)), q.dtype
    q, k, v = wide
    weights, sums = _weights(q, k, mask, is_causal, scale)
    return (weights @ v).astype(narrow), sums.astype(max(narrow, np.dtype("float32")))


def _operands(dtype: str, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for n, m in ((3, 4), (1, 2), (140, 5)):
        q, k, v = (random_array(rng, (2, 2, *size), dtype) for size in ((n, 3), (m, 3), (m, 2)))
        mask = random_array(rng, (2, 2, n, m), "bool")
        mask[..., 0] = True
        for given in (None, mask, random_array(rng, (2, 2, n, m), dtype)):
            yield q, k, v, given, False, 0.5
        yield q, k, v, None, True, 1.0


def _fused_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for args in _operands(dtype, rng):
        yield Sample(args, note="" if args[0].shape[2] < 100 else "many rows, for blocks")
    q, k, v = args[:3]
    blind = np.zeros((2, 2, q.shape[2], k.shape[2]), bool)
    yield Sample((q, k, v, blind, False, 1.0), note="rows that see nothing")


def _fused_backward(grad, q, k, v, mask, result, sums, is_causal, scale, output_mask=7):
    narrow = grad.dtype
    grad, q, k, v = (widest(x) for x in (grad, q, k, v))
    p, _ = _weights(q, k, mask, is_causal, scale)
    up = grad @ np.swapaxes(v, -1, -2)
    slope = p * (up - (p * up).sum(-1, keepdims=True)) * scale
    gradients = slope @ k, np.swapaxes(slope, -1, -2) @ q, np.swapaxes(p, -1, -2) @ grad
    return tuple(array.astype(narrow) for array in gradients)


def _gradient_samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for args in _operands(dtype, rng):
        result, sums = _fused(*args)
        grad = random_array(rng, result.shape, dtype)
        q, k, v, mask, *rest = args
        note = "the result and the sums of exponentials go with the rest"
        yield Sample((grad, q, k, v, mask, result, sums, *rest), note=note)


_TOLERANCE = {"rtol": {"float32": 1e-4}, "atol": {"float32": 1e-5}}
_FOUR = zeros(1, 1, 2, 3)

RECORDS = [
    OpRecord(
        "scaled_dot_product_attention",
        in_double(_attention),
        _queries,
        FLOATS,
        differentiable=True,
        cancels=True,
        namespace="ops",
        errors=(
            *misfit("scaled_dot_product_attention", (2, 3), (2, 4), (2, 3), words=("key", "(2, 4)", "3")),
            *misfit("scaled_dot_product_attention", (2, 3), (2, 3), (4, 3), words=("value", "(4, 3)", "2")),
            *misfit(
                "scaled_dot_product_attention", (4, 2, 3), (3, 2, 3), (3, 2, 3), enable_gqa=True, words=("key", "3")
            ),
        ),
    ),
    OpRecord(
        "fused_attention",
        _fused,
        _fused_samples,
        FLOATS,
        differentiable=True,
        constant=(3,),
        cancels=True,
        half="",
        namespace="ops",
        errors=(
            *misfit("fused_attention", (2, 3), (2, 3), (2, 3), None, False, 1.0, words=("query", "(2, 3)")),
            *misfit("fused_attention", _FOUR, (1, 1, 2, 4), _FOUR, None, False, 1.0, words=("key", "(1, 1, 2, 4)")),
            *misfit("fused_attention", _FOUR, _FOUR, (1, 1, 3, 3), None, False, 1.0, words=("value", "(1, 1, 3, 3)")),
            *misfit("fused_attention", _FOUR, _FOUR, _FOUR, (2, 2), False, 1.0, words=("attn_mask", "(2, 2)")),
        ),
        **_TOLERANCE,
    ),
    OpRecord(
        "fused_attention_backward",
        _fused_backward,
        _gradient_samples,
        FLOATS,
        cancels=True,
        half="",
        namespace="ops",
        errors=(
            *misfit(
                "fused_attention_backward", (1, 1, 2, 2), _FOUR, _FOUR, _FOUR, None, _FOUR, (1, 1, 2), False, 1.0,
                words=("grad", "(1, 1, 2, 2)"),
            ),
            *misfit(
                "fused_attention_backward", _FOUR, _FOUR, _FOUR, _FOUR, None, _FOUR, (1, 2), False, 1.0,
                words=("logsumexp", "(1, 2)"),
            ),
        ),
        **_TOLERANCE,
    ),
]  # fmt: skip
