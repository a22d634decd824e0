"""Records of the reductions and normalisations of the elements that a mask leaves, against NumPy's with `where`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import random_array
from taeda_testing.record import FLOATS, FLOATS_AND_COMPLEX, NUMBERS, REALS, OpRecord, Sample
from taeda_testing.records.arith import log_add_exp
from taeda_testing.wrong import wrong_call, zeros

_SHAPES = ((5,), (3, 4), (2, 3, 4))


def _masks(rng: np.random.Generator, shape: tuple[int, ...], some: int | None) -> Iterator[np.ndarray]:
    """Masks of the shape, and of its last dimension: along dimension `some` (None: in all) each leaves an element."""
    mask = rng.uniform(size=shape) < 0.6
    np.moveaxis(mask, some or 0, 0)[0] = True
    yield mask
    if some in (None, -1, len(shape) - 1):
        yield np.arange(shape[-1]) % 3 != 1


def _reduced(low: float = -4, high: float = 4, several: bool = True, none: bool = True) -> Callable[..., Any]:
    """Calls with every kind of `dim`; `several` dimensions at once; `none`: of all elements, too."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in _SHAPES:
            x = random_array(rng, shape, dtype, low, high)
            if none:
                yield Sample((x,))
                yield Sample((x,), {"mask": next(_masks(rng, shape, None))})
            for dim in range(-1, len(shape)):
                for mask in _masks(rng, shape, dim):
                    yield Sample((x, dim), {"keepdim": dim == 0, "mask": mask})
            if several and len(shape) > 1:
                yield Sample((x, (0, -1)), {"mask": next(_masks(rng, shape, 0))})

    return samples


def _along(note: str = "") -> Callable[..., Any]:
    """Calls along every dimension; with a `note`, those with a mask are not for gradients."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in _SHAPES:
            x = random_array(rng, shape, dtype, -2, 2)
            for dim in range(-1, len(shape)):
                yield Sample((x, dim))
                for mask in _masks(rng, shape, dim):
                    yield Sample((x, dim), {"mask": mask}, note)

    return samples


def _full(x: np.ndarray, mask: Any) -> np.ndarray:
    return np.broadcast_to(True if mask is None else mask, x.shape)


def _with(
    function: Callable[..., Any], initial: Callable[[np.dtype], Any] | None = None
) -> Callable[..., Any]:
    """A reduction of NumPy that takes `where`."""

    def reference(x, dim=None, keepdim=False, mask=None):
        more = {} if initial is None else {"initial": initial(x.dtype)}
        return np.asarray(function(x, axis=dim, keepdims=keepdim, where=_full(x, mask), **more))

    return reference


def _summed(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x, dim=None, keepdim=False, mask=None):
        wide = np.int64 if x.dtype.kind in "biu" else x.dtype
        return np.asarray(function(x, axis=dim, keepdims=keepdim, where=_full(x, mask), dtype=wide))

    return reference


def _least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _most(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _place(function: Callable[..., Any], other: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    def reference(x, dim=None, keepdim=False, mask=None):
        filled = np.where(_full(x, mask), x, np.asarray(other(x.dtype), x.dtype))
        return np.asarray(function(filled, axis=dim, keepdims=keepdim)).astype(x.dtype)

    return reference


def _median(x, dim=-1, keepdim=False, mask=None):
    rows, kept = np.moveaxis(x, dim, -1), np.moveaxis(_full(x, mask), dim, -1)
    out = np.zeros(rows.shape[:-1], x.dtype)
    for at in np.ndindex(out.shape):
        numbers = np.sort(rows[at][kept[at]])
        out[at] = numbers[(numbers.size - 1) // 2]
    return np.expand_dims(out, dim) if keepdim else out


def _norm(x, ord=2.0, dim=None, keepdim=False, mask=None):
    size = np.abs(np.where(_full(x, mask), x, 0))
    if ord == np.inf:
        return size.max(dim, keepdims=keepdim)
    return np.asarray((size**ord).sum(dim, keepdims=keepdim) ** (1 / ord)).astype(size.dtype)


def _norms(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for ord in (2.0, 1.0, 3.0, np.inf):
        for sample in _reduced(0.5, 4)(dtype, rng):
            yield Sample((sample.args[0], ord, *sample.args[1:]), sample.kwargs)


def _normalised(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in _along()(dtype, rng):
        yield Sample((sample.args[0], 2.0, sample.args[1]), sample.kwargs)


def _spread(root: bool) -> Callable[..., Any]:
    def reference(x, dim=None, unbiased=None, correction=None, keepdim=False, mask=None):
        lost = correction if correction is not None else 0 if unbiased is False else 1
        function = np.std if root else np.var
        found = function(x, axis=dim, ddof=lost, keepdims=keepdim, where=_full(x, mask))
        return np.asarray(found).astype(x.dtype)

    return reference


def _spreads(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((6,), (5, 6)):
        x = random_array(rng, shape, dtype)
        mask = np.ones(shape, bool)
        mask[..., 1::3] = False
        for dim in (None, -1, 0 if len(shape) > 1 else -1):
            if dim == 0:
                mask = np.ones(shape, bool)
            yield Sample((x, dim), {"mask": mask})
            yield Sample((x, dim, False), {"mask": mask, "keepdim": True})
            yield Sample((x, dim), {"mask": mask, "correction": 2})
        yield Sample((x,))


def _softmax(sign: int, log: bool = False) -> Callable[..., Any]:
    def reference(x, dim, mask=None):
        kept = np.where(_full(x, mask), sign * x.astype(np.float64), -np.inf)
        shifted = kept - kept.max(dim, keepdims=True)
        with np.errstate(divide="ignore"):
            sums = np.log(np.exp(shifted).sum(dim, keepdims=True))
        return (shifted - sums if log else np.exp(shifted - sums)).astype(x.dtype)

    return reference


def _logsumexp(x, dim=None, keepdim=False, mask=None):
    kept = np.where(_full(x, mask), x.astype(np.result_type(x, np.float64)), -np.inf)
    return np.asarray(np.log(np.exp(kept).sum(dim, keepdims=keepdim))).astype(x.dtype)


def _pairs(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _SHAPES:
        a, b = random_array(rng, shape, dtype), random_array(rng, shape, dtype)
        yield Sample((a, b))
        mask = next(_masks(rng, shape, None))
        yield Sample((a, b), {"input_mask": mask, "other_mask": np.ones(shape, bool)})


def _logaddexp(a, b, input_mask=None, other_mask=None):
    return log_add_exp(
        np.where(_full(a, input_mask), a, -np.inf), np.where(_full(b, other_mask), b, -np.inf)
    ).astype(a.dtype)


def _record(name: str, reference: Any, samples: Any, dtypes: tuple[str, ...], **more: Any) -> OpRecord:
    given = (0,) if name in ("masked_cumsum", "masked_cumprod") else ()
    errors = (
        wrong_call((TypeError, RuntimeError), "mask float32", zeros(3), *given, mask=zeros(3)),
        wrong_call((IndexError, RuntimeError), "mask (2,) (3,)", zeros(3), *given, mask=np.ones(2, bool)),
    )
    facts = {"namespace": "ops", "errors": errors, "half": "largest", **more}
    return OpRecord(name, reference, samples, dtypes, **facts)


_SIGNED = ("int8", "int32", "int64", *FLOATS)

RECORDS = [
    _record("masked_amax", _with(np.amax, _least), _reduced(), _SIGNED, differentiable=True),
    _record("masked_amin", _with(np.amin, _most), _reduced(), _SIGNED, differentiable=True),
    _record("masked_argmax", _place(np.argmax, _least), _reduced(several=False), FLOATS),
    _record("masked_argmin", _place(np.argmin, _most), _reduced(several=False), FLOATS),
    _record("masked_cumprod", lambda x, dim, mask=None: np.cumprod(np.where(_full(x, mask), x, 1), dim), _along(),
            FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_cumsum", lambda x, dim, mask=None: np.cumsum(np.where(_full(x, mask), x, 0), dim), _along(),
            FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_log_softmax", _softmax(1, log=True), _along("what is masked is -inf"), FLOATS,
            differentiable=True, cancels=True, errors=()),
    # The second derivatives of logaddexp are NaN where an operand, masked, is -inf.
    _record("masked_logaddexp", _logaddexp, _pairs, FLOATS_AND_COMPLEX, differentiable=True, second=False, errors=()),
    _record("masked_logsumexp", _logsumexp, _reduced(), FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_mean", _with(np.mean), _reduced(), FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_median", _median, _reduced(several=False, none=False), FLOATS, differentiable=True),
    _record("masked_norm", _norm, _norms, FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_normalize", lambda x, ord, dim, mask=None: np.where(_full(x, mask), x, 0) / np.maximum(
        _norm(x, ord, dim, True, mask), 1e-12
    ), _normalised, FLOATS_AND_COMPLEX, differentiable=True, errors=()),
    _record("masked_prod", _summed(np.prod), _reduced(0.5, 2), NUMBERS[2:4] + FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_softmax", _softmax(1), _along(), FLOATS, differentiable=True, cancels=True, errors=()),
    _record("masked_softmin", _softmax(-1), _along(), FLOATS, differentiable=True, cancels=True, errors=()),
    _record("masked_std", _spread(True), _spreads, FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_sum", _summed(np.sum), _reduced(), REALS[:4] + FLOATS_AND_COMPLEX, differentiable=True),
    _record("masked_var", _spread(False), _spreads, FLOATS_AND_COMPLEX, differentiable=True),
]  # fmt: skip
