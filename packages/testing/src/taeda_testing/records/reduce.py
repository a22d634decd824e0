"""Records of reductions, scans, norms and differences along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from taeda_testing.arrays import in_double, p_distance, p_norm, random_array
from taeda_testing.record import (
    ALL,
    COMPLEX,
    FLOATS,
    FLOATS_AND_COMPLEX,
    NUMBERS,
    REALS,
    OpRecord,
    Sample,
)
from taeda_testing.sampling import Sampler, mostly_zero, reduction, sized, with_axis
from taeda_testing.vocabulary import composed, differentiable
from taeda_testing.wrong import dimension, misfit, wrong_call


def _wide(x: np.ndarray) -> Any:
    return np.int64 if x.dtype.kind in "biu" and x.dtype != np.uint64 else x.dtype


def _summed(function):
    """Integers and bool are summed in int64, uint64 in itself."""

    def call(x: np.ndarray, dim=None, keepdim=False):
        dtype = _wide(x)
        return np.asarray(function(x, axis=dim, keepdims=keepdim, dtype=dtype))

    return call


def _scan(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (3, 4, 2), (0, 3)):
        for dim in range(-1, len(shape)):
            yield Sample((random_array(rng, shape, dtype, -2, 2),), {"dim": dim})


def _scanned(function):
    def call(x: np.ndarray, dim: int) -> np.ndarray:
        return function(x, axis=dim, dtype=_wide(x))

    return call


def _arg(function):
    def call(x: np.ndarray, dim=None, keepdim=False):
        return np.asarray(function(x, axis=dim, keepdims=keepdim), np.int64)

    return call


def _zeros(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Factors that are zero, where the derivative of a product is no quotient."""
    for factors in ([2, 0, 3], [0, 0, 3], [[1, 0], [2, 3]]):
        for dim in (0, -1):
            yield Sample((np.array(factors, dtype),), {"dim": dim})


def _typed(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Sums in a dtype that is asked for, which the elements are converted to first."""
    x = random_array(rng, (2, 3), dtype)
    for wanted in ("float64", "float32"):
        yield Sample((x,), {"dim": 1, "dtype": np.dtype(wanted)}, "" if wanted == dtype else "another dtype")


def _in_dtype(function):
    def call(x: np.ndarray, dim: int, dtype: Any) -> np.ndarray:
        return np.asarray(function(x.astype(dtype), axis=dim, dtype=dtype))

    return call


def _special(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """NaN wins over everything, and of equal extrema the first."""
    for values in ([1, np.nan, np.inf, np.nan], [-np.inf, np.inf, -np.inf, np.inf], [2, -1, 2, -1]):
        yield Sample((np.array(values, dtype),), {}, "special values")
        yield Sample((np.array([values], dtype),), {"dim": 1, "keepdim": True}, "special values")


_SPREAD = {"float32": 1e-4, "float64": 1e-9}


def _reduce(name, reference, samples, dtypes, **more):
    return OpRecord(name, reference, samples, dtypes, rtol=_SPREAD, **more)


def _distinct(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Arrays without equal elements, so that the index of an extremum is certain."""
    for shape in ((5,), (2, 3), (3, 4, 2)):
        values = rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)
        for dim in range(-1, len(shape)):
            yield Sample((values,), {"dim": dim})
            yield Sample((values,), {"dim": dim, "keepdim": True})


def _extremum(value: Callable[..., Any], index: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: np.ndarray, dim: int, keepdim: bool = False) -> tuple[np.ndarray, np.ndarray]:
        found = np.asarray(index(x, axis=dim, keepdims=keepdim), np.int64)
        return np.asarray(value(x, axis=dim, keepdims=keepdim)), found

    return call


def _running(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """Running extremum and the place of its last occurrence, element by element."""

    def call(x: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
        values, places = np.moveaxis(x.copy(), dim, -1), np.zeros(np.moveaxis(x, dim, -1).shape, np.int64)
        for row in np.ndindex(values.shape[:-1]):
            best = 0
            for i in range(values.shape[-1]):
                best = i if better(values[row][i], values[row][best]) else best
                values[(*row, i)], places[(*row, i)] = values[(*row, best)], best
        return np.moveaxis(values, -1, dim), np.moveaxis(places, -1, dim)

    return call


def _along(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    return (s for s in _distinct(dtype, rng) if "keepdim" not in s.kwargs)


def _log_sums(x: np.ndarray, dim: int) -> np.ndarray:
    """Logarithms of running sums of exponentials; angles go on from those of the largest numbers."""
    if x.dtype.kind != "c" or not x.size:
        return np.logaddexp.accumulate(x, axis=dim) if x.dtype.kind != "c" else x.copy()
    rows = np.moveaxis(np.atleast_1d(x).astype(np.complex128), dim, 0)
    sums = [rows[0]]
    for row in rows[1:]:
        first = sums[-1].real > row.real
        high, low = np.where(first, sums[-1], row), np.where(first, row, sums[-1])
        sums.append(high + np.log1p(np.exp(low - high)))
    return np.moveaxis(np.stack(sums), 0, dim).reshape(x.shape).astype(x.dtype)


def _record(name, reference, samples, dtypes=ALL, differentiable=True, **more):
    return OpRecord(name, reference, samples, dtypes, differentiable=differentiable, **more)


def _counted(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in reduction(-1, 1)(dtype, rng):
        if not sample.kwargs.pop("keepdim", False):
            yield sample


def _count_nonzero(x, dim=None):
    return np.asarray(np.count_nonzero(x, axis=dim), np.int64)


_P = (2, 1, 0, 3, 1.5, -1, np.inf, -np.inf)


def _norm_record(name, reference, samples, dtypes=FLOATS_AND_COMPLEX, **more):
    return differentiable(name, reference, samples, dtypes, **more)


def _norm(x, p=2, dim=None, keepdim=False, dtype=None):
    size = np.abs(x if dtype is None else x.astype(dtype)).astype(np.float64)
    axes = None if dim is None else tuple(np.atleast_1d(dim).tolist())
    p = 2 if p in (None, "fro") else p
    if np.isinf(p):
        found = (np.max if p > 0 else np.min)(size, axis=axes, keepdims=keepdim)
    elif p == 0:
        found = (size != 0).sum(axis=axes, keepdims=keepdim)
    else:
        found = (size**p).sum(axis=axes, keepdims=keepdim) ** (1 / p)
    return np.asarray(found).astype(np.zeros(0, dtype or x.dtype).real.dtype)


def _norms(names: bool = True) -> Sampler:
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        x = random_array(rng, (3, 4), dtype)
        yield Sample((x,))
        for p in (*_P, *((None, "fro") if names else ())):
            yield Sample((x, p))
            yield Sample((x, p), {"dim": 1, "keepdim": True})
        yield Sample((random_array(rng, (2, 3, 2), dtype), 2, (0, -1)))
        yield Sample((random_array(rng, (2, 3, 2), dtype), 1, [1], True))
        yield Sample((random_array(rng, (), dtype), 2))
        yield Sample((random_array(rng, (0, 3), dtype), 2, 0))
        yield Sample((x[:2], 2, 0), {"dtype": np.dtype("complex128" if x.dtype.kind == "c" else "float64")})

    return samples


def _distances(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for a, b in (((5,), (5,)), ((2, 3), (3,)), ((), (3,)), ((0,), (0,))):
        yield Sample((random_array(rng, a, dtype), random_array(rng, b, dtype)))
    for p in _P:
        yield Sample((random_array(rng, (2, 3), dtype), random_array(rng, (2, 1), dtype), p))


_LOOSE = {"rtol": {"float32": 1e-5, "complex64": 1e-5}, "atol": {"float32": 1e-5, "complex64": 1e-5}}


def _differences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, args in (
        ((5,), ()),
        ((3, 4), (2,)),
        ((3, 4), (1, 0)),
        ((3,), (0,)),
        ((2,), (3,)),
        ((2, 0), ()),
    ):
        yield Sample((random_array(rng, shape, dtype), *args))
    more = {name: random_array(rng, (2, size), dtype) for name, size in (("prepend", 1), ("append", 2))}
    yield Sample((random_array(rng, (2, 3), dtype),), more)


def _diff(x: np.ndarray, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> np.ndarray:
    x = np.concatenate([part for part in (prepend, x, append) if part is not None], dim)
    for _ in range(n):
        if x.shape[dim] == 0:
            break
        x = np.diff(x, axis=dim)
    return x


def _curves(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (3, 4), (1, 2), (2, 1)):
        yield Sample((random_array(rng, shape, dtype),))
        yield Sample((random_array(rng, shape, dtype),), {"dx": 0.5})
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape[-1:], dtype)))
        yield Sample((random_array(rng, shape, dtype), random_array(rng, shape, dtype)), {"dim": 0})


def _areas(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    y = np.moveaxis(y, dim, -1)
    steps = dx if x is None else np.diff(x if x.ndim < y.ndim else np.moveaxis(x, dim, -1))
    return np.moveaxis((y[..., 1:] + y[..., :-1]) / 2 * steps, -1, dim).astype(y.dtype)


def _summed_differences(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    return _areas(y, x, dx, dim).sum(dim)


def _trapezoids(y: np.ndarray, x: Any = None, dx: float = 1, dim: int = -1) -> np.ndarray:
    return _areas(y, x, dx, dim).cumsum(dim)


_TWO = np.zeros(2, np.float32)

_TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def _spread(name, reference, samples, dtypes=FLOATS, **more):
    return differentiable(name, reference, samples, dtypes, rtol=_TOLERANCE, **more)


def _spreads(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sample in reduction(empty=False)(dtype, rng):
        if np.size(sample.args[0]) > 1:
            yield sample
    x = random_array(rng, (3, 4), dtype)
    for options in ({"correction": 0}, {"correction": 2}, {"correction": 0.5}, {"unbiased": False}):
        yield Sample((x,), options)
        yield Sample((x,), {"dim": 1, **options})
    yield Sample((x, 0, False))
    yield Sample((x, [0, 1], False, True))
    yield Sample((x,), {"dim": (-1,), "keepdim": True, "correction": 0})
    yield Sample((x[:1],), {"dim": 0}, "one element, divided by 0")
    yield Sample((x[:, :0],), {"dim": 1}, "no element")


def _unbiased(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for unbiased in (False, True):
        yield Sample((random_array(rng, (3, 4), dtype), unbiased))


def _variance(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    axes = tuple(range(x.ndim)) if dim is None else tuple(np.atleast_1d(dim).tolist())
    n = int(np.prod([x.shape[i] for i in axes]))
    mean = np.sum(x, axis=axes, keepdims=True) / np.asarray(n, x.real.dtype)
    divisor = max(0, n - (int(unbiased) if correction is None else correction))
    squares = (np.abs(x - mean) ** 2).sum(axis=axes, keepdims=keepdim)
    return np.asarray(squares / np.asarray(divisor, squares.dtype)).astype(squares.dtype)


def _deviation(x, *args, **kwargs):
    return np.sqrt(_variance(x, *args, **kwargs))


def _with_mean(spread: Callable[..., Any]) -> Callable[..., Any]:
    def call(x, *args, **kwargs):
        names = dict(zip(("dim", "unbiased", "keepdim"), args, strict=False), **kwargs)
        dim = names.get("dim")
        axes = None if dim is None or isinstance(dim, bool) else tuple(np.atleast_1d(dim).tolist())
        total = np.asarray(np.sum(x, axis=axes, keepdims=names.get("keepdim", False)))
        return spread(x, *args, **kwargs), total / np.asarray(x.size // max(1, total.size), x.real.dtype)

    return call


def _extrema(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    yield from reduction(tuples=False, empty=False)(dtype, rng)
    if np.dtype(dtype).kind == "f":
        yield Sample((np.array([[1, np.nan], [np.inf, -2]], dtype),), {"dim": 1}, "special values")


def _both(x, dim=None, keepdim=False):
    return [np.asarray(f(x, axis=dim, keepdims=keepdim)) for f in (np.min, np.max)]


def _errors(inner: str) -> Any:
    return (
        *misfit(inner, (2, 3), 2, words=("dim", "2"), error=IndexError),
        *misfit(inner, np.zeros(3, np.int64), words=("int64",), error=(RuntimeError, TypeError)),
    )


def _cosine(a, b, dim=1, eps=1e-8):
    a, b = np.broadcast_arrays(a, b)
    lengths = np.maximum(p_norm(a, 2, dim), eps) * np.maximum(p_norm(b, 2, dim), eps)
    return (a * b).sum(dim) / lengths


_ROW_PAIRS = (((4, 3), (4, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)))


def _truth(function: Any) -> Any:
    """With a dimension; of uint8 the result is uint8, as it was before there was bool."""
    found = with_axis(function)
    return lambda x, *args, **kwargs: np.asarray(found(x, *args, **kwargs)).astype(
        np.uint8 if x.dtype == np.uint8 else bool
    )


RECORDS = [
    _reduce("sum", _summed(np.sum), reduction(), ALL, differentiable=True, out=True, atol={"float32": 1e-3},
            errors=dimension("sum")),
    _reduce("prod", _summed(np.prod), reduction(0.9, 1.1), ("bool", *NUMBERS), differentiable=True, out=True,
            half="largest", errors=dimension("prod")),
    _reduce(
        "mean", with_axis(np.mean), reduction(empty=False), (*FLOATS, *COMPLEX), differentiable=True, out=True,
            errors=dimension("mean")
    ),
    _reduce("amax", with_axis(np.amax), reduction(empty=False), REALS, differentiable=True, out=True, half="largest",
            errors=dimension("amax")),
    _reduce("amin", with_axis(np.amin), reduction(empty=False), REALS, differentiable=True, out=True, half="largest",
            errors=dimension("amin")),
    _reduce("any", _truth(np.any), reduction(), ALL, out=True, errors=dimension("any")),
    _reduce("all", _truth(np.all), reduction(), ALL, out=True, errors=dimension("all")),
    _reduce("argmax", _arg(np.argmax), reduction(tuples=False, empty=False), REALS, out=True,
            errors=dimension("argmax")),
    _reduce("argmin", _arg(np.argmin), reduction(tuples=False, empty=False), REALS, out=True,
            errors=dimension("argmin")),
    _reduce("cumsum", _scanned(np.cumsum), _scan, NUMBERS, differentiable=True, out=True, in_place=True,
            errors=dimension("cumsum")),
    _reduce("cumprod", _scanned(np.cumprod), _scan, NUMBERS, differentiable=True, out=True, in_place=True,
            half="largest", errors=dimension("cumprod")),
    OpRecord(
        "logsumexp",
        lambda x, dim, keepdim=False: np.asarray(special.logsumexp(x, axis=dim, keepdims=keepdim)).astype(
            x.dtype
        ),
        lambda dtype, rng: (s for s in reduction(empty=False)(dtype, rng) if "dim" in s.kwargs),
        FLOATS_AND_COMPLEX,
        differentiable=True,
        out=True,
        half="largest",
        errors=dimension("logsumexp"),
    ),
    _reduce("prod", _summed(np.prod), _zeros, NUMBERS, differentiable=True, half="largest"),
    _reduce("cumprod", _scanned(np.cumprod), _zeros, NUMBERS, differentiable=True, half="largest"),
    *(
        _reduce(name, _in_dtype(reference), _typed, ("bool", *REALS), differentiable=True)
        for name, reference in (
            ("sum", np.sum),
            ("prod", np.prod),
            (
                "mean",
                lambda x, axis, dtype: np.sum(x, axis=axis, dtype=dtype) / np.asarray(x.shape[axis], dtype),
            ),
            ("cumsum", np.cumsum),
            ("cumprod", np.cumprod),
        )
    ),
    *(
        _reduce(name, with_axis(reference), _special, FLOATS)
        for name, reference in (("amax", np.amax), ("amin", np.amin))
    ),
    *(
        _reduce(name, _arg(reference), _special, FLOATS)
        for name, reference in (("argmax", np.argmax), ("argmin", np.argmin))
    ),
    differentiable("max", _extremum(np.max, np.argmax), _distinct, REALS,
             errors=misfit("max", (2, 3), 2, words=("dim", "2"), error=IndexError)),
    differentiable("min", _extremum(np.min, np.argmin), _distinct, REALS,
             errors=misfit("min", (2, 0), 1, words=("1", "(2, 0)"), error=(IndexError, RuntimeError))),
    differentiable("cummax", _running(np.greater_equal), _along, REALS,
             errors=misfit("cummax", (2, 3), -3, words=("dim", "-3"), error=IndexError)),
    differentiable("cummin", _running(np.less_equal), _along, REALS,
             errors=misfit("cummin", (2, 3), 2, words=("dim", "2"), error=IndexError)),
    differentiable("logcumsumexp", _log_sums, _along, FLOATS_AND_COMPLEX, out=True,
             errors=misfit("logcumsumexp", (3,), 1, words=("dim", "1"), error=IndexError), half="largest"),
    _record("count_nonzero", _count_nonzero, mostly_zero, differentiable=False),
    _record("count_nonzero", _count_nonzero, _counted, differentiable=False, errors=misfit(
        "", (2, 3), 2, words=("dim", "2"), error=IndexError
    )),
    differentiable("nansum", with_axis(np.nansum), reduction(), FLOATS_AND_COMPLEX, rtol={"float32": 1e-4}),
    differentiable("nanmean", with_axis(np.nanmean), reduction(empty=False), FLOATS_AND_COMPLEX,
            rtol={"float32": 1e-4}),
    _norm_record("dist", lambda x, y, p=2: _norm(x - y, p), _distances, errors=misfit(
        "", (2, 3), (4,), words=("3", "4")
    ), half="largest"),
    _norm_record("norm", _norm, _norms(), FLOATS_AND_COMPLEX, errors=(
        *misfit("norm", (2, 3), "nuclear", words=("p", "nuclear")),
        *misfit("norm", (2, 3), 2, 2, error=IndexError, words=("dim", "2")),
    ), half="largest"),
    _norm_record("vector_norm", _norm, _norms(False), FLOATS_AND_COMPLEX, namespace="ops", out=True, errors=misfit(
        "vector_norm", (2, 3), 2, -3, error=IndexError, words=("dim", "-3")
    ), half="largest"),
    differentiable("diff", _diff, _differences, ALL, out=True, errors=(
        wrong_call(RuntimeError, "diff", np.float32(1)[...]),
        wrong_call(RuntimeError, "diff n -1", _TWO, -1),
        wrong_call(IndexError, "1", _TWO, 1, 1),
    )),
    differentiable("trapezoid", _summed_differences, _curves, FLOATS_AND_COMPLEX, **_LOOSE, errors=(
        wrong_call(RuntimeError, "trapezoid x dx", _TWO, _TWO, dx=1),
        wrong_call(RuntimeError, "trapezoid x 3", _TWO, np.zeros(3, np.float32)),
    )),
    differentiable("cumulative_trapezoid", _trapezoids, _curves, FLOATS_AND_COMPLEX, **_LOOSE, errors=(
        wrong_call(RuntimeError, "cumulative_trapezoid x 3", _TWO, np.zeros(3, np.float32)),
    )),
    _spread("aminmax", _both, _extrema, ("bool", *REALS), errors=(
        *misfit("aminmax", (2, 3), dim=2, words=("dim", "2"), error=IndexError),
        *misfit("aminmax", (0,), words=("self", "(0,)"), error=(RuntimeError, IndexError)),
    )),
    *(_spread(name, reference, _unbiased) for name, reference in (
        ("std", _deviation), ("std_mean", _with_mean(_deviation)),
        ("var", _variance), ("var_mean", _with_mean(_variance)),
    )),
    _spread("std", _deviation, _spreads, (*FLOATS, *COMPLEX), errors=_errors("std"), half="largest"),
    _spread("std_mean", _with_mean(_deviation), _spreads, (*FLOATS, *COMPLEX), errors=_errors("std_mean"),
            half="largest"),
    _spread("var", _variance, _spreads, (*FLOATS, *COMPLEX), out=True, errors=_errors("var")),
    _spread("var_mean", _with_mean(_variance), _spreads, (*FLOATS, *COMPLEX), errors=_errors("var_mean")),
    _spread("std", _deviation, lambda d, rng: [Sample((np.full(3, 2, d),))], second=False, half="largest"),
    composed("cosine_similarity", in_double(_cosine), sized(
        *((a, b, -1) for a, b in _ROW_PAIRS), ((4, 3), (4, 3)), ((2, 3, 2), (2, 3, 2), 1, 1e-3)
    ), errors=(
        *misfit("", (2, 3), (4,), words=("3", "4")),
        *misfit("", (2, 3), (2, 3), 2, error=IndexError, words=("2",)),
    )),
    composed("pairwise_distance", in_double(p_distance), sized(
        *((a, b, p, 1e-6, keep) for a, b in _ROW_PAIRS for p in (2.0, 1.0, 3.0, np.inf) for keep in (False, True)),
        ((4, 3), (4, 3)), ((3,), (3,)),
    ), FLOATS_AND_COMPLEX, errors=misfit("", (2, 3), (4,), words=("3", "4"))),
]  # fmt: skip
