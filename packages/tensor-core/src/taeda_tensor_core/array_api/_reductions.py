"""Statistics, truth, order and sets."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core.array_api import _dtypes
from taeda_tensor_core.array_api._array import Array, as_array, axis_of, plain
from taeda_tensor_core.array_api._elementwise import _NUMERIC, _REAL, _check, array_argument, both
from taeda_tensor_core.array_api._manipulation import axes_of

Tensor = core.Tensor
_FLOATS = frozenset({2, 3})


def _summed(dtype: Any) -> Any:
    """The dtype that sums of ``dtype`` have: integers at least the default one."""
    if _dtypes.level(dtype) != 1:
        return dtype
    wide = core.int64 if dtype in _dtypes.SIGNED else core.uint64
    return wide if dtype.itemsize < 8 else dtype


def _over(name: str, tensor: Any, axis: Any, keepdims: bool, reduce: Callable[[Any, Any], Any]) -> Array:
    """``reduce(tensor, axes)``, whose axes stay with size 1; nothing is reduced over no axes."""
    axes = axes_of(name, tensor, axis)
    result = reduce(tensor, axes) if axes or tensor.ndim == 0 else reduce(tensor.unsqueeze(0), (0,))
    shape = tuple(1 if i in axes else n for i, n in enumerate(tensor.shape)) if keepdims else tuple(
        n for i, n in enumerate(tensor.shape) if i not in axes
    )  # fmt: skip
    return as_array(result.reshape(shape))


def _flat(reduce: Callable[[Any, int], Any]) -> Callable[[Any, tuple[int, ...]], Any]:
    """A reduction over one axis as one over several."""

    def over(tensor: Any, axes: tuple[int, ...]) -> Any:
        if not axes:
            return reduce(tensor.reshape(1), 0)
        kept = [i for i in range(tensor.ndim) if i not in axes]
        moved = tensor.permute(*kept, *axes)
        count = 1
        for a in axes:
            count *= tensor.shape[a]
        return reduce(moved.reshape(*(tensor.shape[i] for i in kept), count), -1)

    return over


def sum(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sums; of integers at least in 64 bits."""
    tensor = array_argument("sum", "x", x)
    _check("sum", tensor.dtype, _NUMERIC)
    result = dtype or _summed(tensor.dtype)
    return _over("sum", tensor, axis, keepdims, lambda t, axes: core.sum(t, axes or None, dtype=result))


def prod(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Products; of integers at least in 64 bits."""
    tensor = array_argument("prod", "x", x)
    _check("prod", tensor.dtype, _NUMERIC)
    result = dtype or _summed(tensor.dtype)
    return _over("prod", tensor, axis, keepdims, _flat(lambda t, d: core.prod(t, d, dtype=result)))


def mean(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Arithmetic means."""
    tensor = array_argument("mean", "x", x)
    _check("mean", tensor.dtype, _FLOATS)
    return _over("mean", tensor, axis, keepdims, lambda t, axes: core.mean(t, axes or None))


def var(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Variances, of N elements with the divisor N - ``correction``."""
    tensor = array_argument("var", "x", x)
    _check("var", tensor.dtype, frozenset({2}))
    return _over(
        "var", tensor, axis, keepdims, lambda t, axes: core.var(t, axes or None, correction=correction)
    )


def std(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviations, of N elements with the divisor N - ``correction``."""
    tensor = array_argument("std", "x", x)
    _check("std", tensor.dtype, frozenset({2}))
    return _over(
        "std", tensor, axis, keepdims, lambda t, axes: core.std(t, axes or None, correction=correction)
    )


def max(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The greatest elements; NaN where one is."""
    tensor = array_argument("max", "x", x)
    _check("max", tensor.dtype, _REAL)
    return _over("max", tensor, axis, keepdims, core.amax)


def min(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The least elements; NaN where one is."""
    tensor = array_argument("min", "x", x)
    _check("min", tensor.dtype, _REAL)
    return _over("min", tensor, axis, keepdims, core.amin)


def all(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether all elements are true or not zero."""
    tensor = array_argument("all", "x", x).to(core.bool)
    return _over("all", tensor, axis, keepdims, _flat(core.all))


def any(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether an element is true or not zero."""
    tensor = array_argument("any", "x", x).to(core.bool)
    return _over("any", tensor, axis, keepdims, _flat(core.any))


def count_nonzero(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements are not zero, int64."""
    tensor = array_argument("count_nonzero", "x", x) != 0
    return _over(
        "count_nonzero", tensor, axis, keepdims, lambda t, axes: core.sum(t, axes or None, dtype=core.int64)
    )


def _cumulative(
    name: str,
    compute: Callable[..., Any],
    start: int,
    x: Any,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
) -> Array:
    tensor = array_argument(name, "x", x)
    _check(name, tensor.dtype, _NUMERIC)
    if axis is None:
        if tensor.ndim != 1:
            raise ValueError(f"{name}: argument 'axis' is needed for an array of {tensor.ndim} dimensions")
        axis = 0
    axis = axis_of(name, tensor, axis)
    result = compute(tensor, axis, dtype=dtype or _summed(tensor.dtype))
    if include_initial:
        shape = [1 if i == axis else n for i, n in enumerate(tensor.shape)]
        result = core.cat([core.full(shape, start, dtype=result.dtype, device=result.device), result], axis)
    return as_array(result)


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Sums up to each element; ``include_initial`` puts a 0 before them."""
    return _cumulative("cumulative_sum", core.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Products up to each element; ``include_initial`` puts a 1 before them."""
    return _cumulative("cumulative_prod", core.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Differences of neighbours along ``axis``, ``n`` times."""
    tensor = array_argument("diff", "x", x)
    ends = [None if end is None else plain(end) for end in (prepend, append)]
    return as_array(core.diff(tensor, n, axis_of("diff", tensor, axis), ends[0], ends[1]))


def _extreme(name: str, compute: Callable[..., Any], x: Any, axis: int | None, keepdims: bool) -> Array:
    tensor = array_argument(name, "x", x)
    _check(name, tensor.dtype, _REAL)
    if axis is None:
        result = compute(tensor.reshape(-1), 0)
        return as_array(result.reshape((1,) * tensor.ndim) if keepdims else result)
    return as_array(compute(tensor, axis_of(name, tensor, axis), keepdim=keepdims))


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Places of the greatest elements, int64, of several the first; NaN counts as the greatest."""
    return _extreme("argmax", core.argmax, x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Places of the least elements, int64, of several the first; NaN counts as the least."""
    return _extreme("argmin", core.argmin, x, axis, keepdims)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Elements in order along ``axis``; NaN counts as the greatest."""
    tensor = array_argument("sort", "x", x)
    _check("sort", tensor.dtype, _REAL)
    return as_array(
        core.sort(tensor, dim=axis_of("sort", tensor, axis), descending=descending, stable=stable)[0]
    )


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The places, int64, that elements in order along ``axis`` come from."""
    tensor = array_argument("argsort", "x", x)
    _check("argsort", tensor.dtype, _REAL)
    return as_array(
        core.argsort(tensor, dim=axis_of("argsort", tensor, axis), descending=descending, stable=stable)
    )


def searchsorted(x1: Array, x2: Any, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Where elements of ``x2`` would stand in the ordered ``x1``, int64."""
    a, b = both("searchsorted", array_argument("searchsorted", "x1", x1), x2)
    places = None if sorter is None else plain(sorter).to(core.int64)
    return as_array(core.searchsorted(a, b.contiguous(), side=side, sorter=places))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` is one of ``x2``; ``invert``: whether it is none."""
    a, b = both("isin", x1, x2)
    return as_array(core.isin(a, b, invert=invert))


unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def _unique(x: Any) -> tuple[Any, Any, Any, Any]:
    """Values in order, where each is first, which one each element is, how many there are; no NaN equals another."""
    tensor = array_argument("unique", "x", x)
    flat = tensor.reshape(-1)
    if flat.numel() == 0:
        none = core.zeros(0, dtype=core.int64, device=flat.device)
        return flat, none, none.reshape(tensor.shape), none
    order = _order(flat)
    placed = flat[order]
    new = core.cat([core.ones(1, dtype=core.bool, device=flat.device), placed[1:] != placed[:-1]])
    starts = new.nonzero().reshape(-1)
    ends = core.cat([starts[1:], core.full((1,), flat.numel(), dtype=core.int64, device=flat.device)])
    inverse = core.empty_like(order)
    inverse[order] = new.to(core.int64).cumsum(0) - 1
    return placed[starts], order[starts], inverse.reshape(tensor.shape), ends - starts


def _order(flat: Any) -> Any:
    """A stable order of elements; of complex numbers by real, then by imaginary parts."""
    if not flat.dtype.is_complex:
        return core.argsort(flat, dim=0, stable=True)
    by_imaginary = core.argsort(core.imag(flat), dim=0, stable=True)
    return by_imaginary[core.argsort(core.real(flat)[by_imaginary], dim=0, stable=True)]


def unique_all(x: Array, /) -> Any:
    """The different elements: values, where each is first, which one each element is, how many there are of each."""
    return unique_all_result(*(as_array(part) for part in _unique(x)))


def unique_counts(x: Array, /) -> Any:
    """The different elements: values, and how many there are of each."""
    values, _, _, counts = _unique(x)
    return unique_counts_result(as_array(values), as_array(counts))


def unique_inverse(x: Array, /) -> Any:
    """The different elements: values, and which one each element is."""
    values, _, inverse, _ = _unique(x)
    return unique_inverse_result(as_array(values), as_array(inverse))


def unique_values(x: Array, /) -> Array:
    """The different elements, in order."""
    return as_array(_unique(x)[0])
