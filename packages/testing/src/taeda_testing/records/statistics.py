"""Records of quantiles, histograms, most frequent values and other statistics of samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import all_different, random_array
from taeda_testing.record import COMPLEX, FLOATS, FLOATS_AND_COMPLEX, REALS, OpRecord, Sample
from taeda_testing.sampling import calls
from taeda_testing.vocabulary import differentiable
from taeda_testing.wrong import misfit

_ORDERED = tuple(d for d in REALS if d not in ("uint16", "uint32", "uint64"))


def _combined(x: np.ndarray, r: int = 2, with_replacement: bool = False) -> np.ndarray:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(len(x)), r)) if r else []
    return x[np.array(rows, np.int64).reshape(-1, r)] if r else np.zeros(0, x.dtype)


def _powers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((7,), (2, 3), (), (0, 2)):
        yield Sample((random_array(rng, shape, dtype, -40, 40),))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -0.5, 1e-40], dtype)
    yield Sample((special,), {}, "special values")


def _frexp(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mantissa, exponent = np.frexp(x)
    return mantissa, np.where(np.isfinite(x), exponent, 0).astype(np.int32)


def _differences(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dims in (((5,), None), ((4, 3), None), ((4, 5), (1,)), ((3, 4, 5), (0, -1))):
        count = len(shape) if dims is None else len(dims)
        x = random_array(rng, shape, dtype)
        for edge_order in (1, 2):
            more = {"edge_order": edge_order, **({} if dims is None else {"dim": dims})}
            yield Sample((x,), dict(more))
            yield Sample((x,), {"spacing": 0.5, **more})
            yield Sample((x,), {"spacing": [0.5 + i for i in range(count)], **more})
            sizes = shape if dims is None else [shape[d] for d in dims]
            places = [np.cumsum(rng.uniform(0.5, 2, n)).astype("float64") for n in sizes]
            if dtype == "float64":
                yield Sample((x,), {"spacing": places, **more}, "coordinates are no operands here")
    yield Sample((random_array(rng, (2,), dtype),))


def _gradient(x: np.ndarray, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> list[np.ndarray]:
    dims = tuple(range(x.ndim)) if dim is None else dim
    steps = spacing if isinstance(spacing, list) else [1.0 if spacing is None else spacing] * len(dims)
    found = np.gradient(x, *steps, axis=dims, edge_order=edge_order)
    return [np.asarray(g, x.dtype) for g in (found if isinstance(found, (list, tuple)) else [found])]


def _counted(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((20,), (3, 4), (1,), ()):
        x = random_array(rng, shape, dtype)
        yield Sample((x, 4 if x.size > 1 else 3))  # a lone element lies in the middle, where there is no edge
        yield Sample((x,), {"bins": 3, "range": (-2.0, 2.5)})
        yield Sample((x, 5), {"weight": random_array(rng, shape, dtype, 0, 1)})
        yield Sample((x, 5), {"range": (-5.0, 5.0), "density": True})
        yield Sample((x, np.array([-3, -1, 0, 0.5, 4], dtype)))
        edges = np.array([-5, -1, 0, 0.5, 5], dtype)
        yield Sample((x, edges), {"weight": random_array(rng, shape, dtype, 0.5, 1), "density": True})
    yield Sample((np.array([0, 1, 2, 3, 4, 5], dtype), 4), {"range": (0.0, 4.0)})
    yield Sample((np.zeros(3, dtype), 2))


def _histogram(x, bins=100, range=None, weight=None, density=False):
    wide = bins if isinstance(bins, int) else bins.astype(np.float64)
    weight = None if weight is None else weight.astype(np.float64).reshape(-1)
    hist, edges = np.histogram(x.astype(np.float64).reshape(-1), wide, range, density=density, weights=weight)
    return hist.astype(x.dtype), edges.astype(x.dtype)


def _points(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((12, 2), (3, 4, 3), (5, 1)):
        x, axes = random_array(rng, shape, dtype), shape[-1]
        yield Sample((x, [3] * axes))
        yield Sample((x, [4]), {"range": [-5.0, 5.0] * axes, "density": True})
        yield Sample((x, [2] * axes), {"weight": random_array(rng, shape[:-1], dtype, 0, 1)})
        yield Sample((x, [np.array([-5, 0, 1 + d, 5], dtype) for d in range(axes)]))


def _histogramdd(x, bins, range=None, weight=None, density=False):
    points = x.reshape(-1, x.shape[-1]).astype(np.float64)
    axes = points.shape[1]
    bins = bins * axes if len(bins) == 1 and isinstance(bins[0], int) else bins
    pairs = None if range is None else [tuple(range[2 * d : 2 * d + 2]) for d in np.arange(axes)]
    weight = None if weight is None else weight.reshape(-1).astype(np.float64)
    hist, edges = np.histogramdd(points, bins, pairs, density=density, weights=weight)
    return [hist.astype(x.dtype), *(e.astype(x.dtype) for e in edges)]


def _frequent(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Each value that is the most frequent one stands once, so that its place is known."""
    for shape in ((5,), (3, 4), (2, 3, 4), (1,)):
        for dim in range(-1, len(shape)):
            yield Sample((all_different(rng, shape, dtype), dim))
        yield Sample((all_different(rng, shape, dtype),), {"dim": 0, "keepdim": True})
    yield Sample((random_array(rng, (), dtype),))


def _mode(x, dim=-1, keepdim=False):
    if x.ndim == 0:
        return x, np.asarray(np.int64(0))
    places = np.argmin(x, dim, keepdims=True)
    values = np.take_along_axis(x, places, dim)
    return (values, places) if keepdim else (np.squeeze(values, dim), np.squeeze(places, dim))


def _holed(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = all_different(rng, shape, dtype)
    if np.dtype(dtype).kind == "f":
        x.reshape(-1)[::3] = np.nan
    return x


def _holed_medians(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (6, 5), (2, 3, 4)):
        for dim in range(-1, len(shape)):
            yield Sample((_holed(rng, shape, dtype), dim), {}, "NaN")
        yield Sample((all_different(rng, shape, dtype), 0, True))
    if np.dtype(dtype).kind == "f":
        yield Sample((np.full((2, 3), np.nan, dtype), 1), {}, "NaN alone")


def _nanmedian(x, dim, keepdim=False):
    rows = np.moveaxis(x, dim, -1)
    order = np.argsort(rows, axis=-1, kind="stable")
    numbers = np.maximum((~np.isnan(rows)).sum(-1, keepdims=True), 1)
    places = np.take_along_axis(order, (numbers - 1) // 2, -1)
    found = [np.moveaxis(part, -1, dim) for part in (np.take_along_axis(rows, places, -1), places)]
    return found if keepdim else [np.squeeze(part, dim) for part in found]


def _holed_all(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), (1,), ()):
        yield Sample((all_different(rng, shape, dtype),))
    if np.dtype(dtype).kind == "f":
        yield Sample((_holed(rng, (3, 4), dtype),), {}, "NaN")
        yield Sample((np.zeros((0, 2), dtype),), {}, "nothing")


def _middle(x):
    numbers = np.sort(x[~np.isnan(x)].ravel())
    return np.asarray(numbers[(numbers.size - 1) // 2] if numbers.size else np.nan).astype(x.dtype)


def _quantiles(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((7,), (3, 4), (2, 3, 4), (1,), ()):
        x = all_different(rng, shape, dtype)
        yield Sample((x, 0.3))
        yield Sample((x, 0.5), {"keepdim": True})
        for how in ("linear", "lower", "higher", "midpoint", "nearest"):
            yield Sample((x, 0.37, 0), {"interpolation": how})
        yield Sample((x, np.array([0.0, 0.25, 1.0], dtype), -1, True), {}, "kinks at the elements")
    x = all_different(rng, (4, 3), dtype)
    x[1, 2] = np.nan
    yield Sample((x, 0.4, 1), {}, "NaN")


def _quantile_by(function):
    def reference(x, q, dim=None, keepdim=False, interpolation="linear"):
        q, dim = np.asarray(q, x.dtype), dim if x.ndim else None
        return np.asarray(function(x, q, axis=dim, keepdims=keepdim, method=interpolation)).astype(x.dtype)

    return reference


def _places(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in ((7,), (3, 4), (2, 3, 2), ()):
        x = random_array(rng, shape, "int8", 0, 2).astype(dtype)
        for size in (0, 2, 30):
            yield Sample((x,), {"size": size})
            yield Sample((x,), {"size": size, "fill_value": 7})


def _nonzero_static(x, size, fill_value=-1):
    found = np.argwhere(x) if x.ndim else np.zeros((int(bool(x)), 0), np.int64)
    out = np.full((size, x.ndim), fill_value, np.int64)
    out[: min(size, len(found))] = found[:size]
    return out


def _renorm(x, p, dim, maxnorm):
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = np.abs(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
    norms = (
        (size**p).sum(others, keepdims=True) ** (1 / p) if p != np.inf else size.max(others, keepdims=True)
    )
    return (x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)).astype(x.dtype)


_SEGMENTS = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "amax": np.maximum,
    "min": np.minimum,
    "amin": np.minimum,
    "prod": np.multiply,
}


def _segments(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for reduce in _SEGMENTS:
        for shape, axis, lengths in (
            ((5,), 0, [2, 3]),
            ((4, 3), 0, [1, 0, 3]),
            ((2, 5), 1, [[2, 3], [5, 0]]),
        ):
            x, sizes = random_array(rng, shape, dtype, 0.5, 3), np.int64(lengths)
            initial = {} if reduce in ("sum", "prod") else {"initial": 1.0}
            yield Sample((x, reduce), {"lengths": sizes, "axis": axis, **initial})
            bounds = np.concatenate([np.zeros((*sizes.shape[:-1], 1), np.int64), np.cumsum(sizes, -1)], -1)
            yield Sample((x, reduce), {"offsets": bounds, "axis": axis, "initial": 2})


def _segment_reduce(x, reduce, lengths=None, offsets=None, axis=0, initial=None):
    sizes = lengths if offsets is None else np.diff(offsets, axis=-1)
    start = initial if initial is not None else {"sum": 0, "prod": 1}[reduce]
    join = _SEGMENTS[reduce]
    out = np.zeros((*sizes.shape, *x.shape[axis + 1 :]), np.float64)
    for row in np.ndindex(sizes.shape[:-1]):
        at = 0
        for i, n in enumerate(sizes[row]):
            found = join.reduce(x[row][at : at + n].astype(np.float64), 0, initial=start)
            out[(*row, i)] = found / n if reduce == "mean" and n else found
            at += n
    return out.astype(x.dtype)


RECORDS = [
    OpRecord("combinations", _combined, calls(((5,),), ((4,), 3), ((4,), 3, True), ((3,), 1), ((3,), 4),
                                              ((0,), 2), ((2,), 3, True)),
             ("bool", *_ORDERED, *COMPLEX), differentiable=True, half="", errors=(
        *misfit("combinations", (2, 3), words=("self", "(2, 3)")),
        *misfit("combinations", (3,), -1, words=("r", "-1")),
    )),
    OpRecord("frexp", _frexp, _powers, FLOATS, differentiable=True, errors=misfit(
        "frexp", np.zeros(3, np.int64), words=("int64",)
    )),
    OpRecord("gradient", _gradient, _differences, FLOATS_AND_COMPLEX, differentiable=True, half="largest", errors=(
        *misfit("gradient", (3,), edge_order=3, words=("edge_order", "3")),
        *misfit("gradient", (1, 3), words=("0", "(1, 3)")),
        *misfit("gradient", (3, 3), dim=(0, 0), words=("dim", "0")),
        *misfit("gradient", (3, 3), spacing=[1.0], words=("spacing", "1", "2")),
        *misfit("", (3, 3), dim=2, words=("2",), error=IndexError),
    )),
    OpRecord("histogram", _histogram, _counted, FLOATS, half="", errors=(
        *misfit("histogram", (3,), 0, words=("bins", "0")),
        *misfit("histogram", (3,), 2, range=(3.0, 1.0), words=("range", "3", "1")),
        *misfit("histogram", (3,), 2, weight=np.zeros(2, np.float32), words=("weight", "(2,)", "(3,)")),
        *misfit("histogram", (3,), np.zeros(3, np.float64), words=("bins", "float64", "float32")),
        *misfit("histogram", np.zeros(3, np.int64), 2, words=("int64",)),
    )),
    OpRecord("histogramdd", _histogramdd, _points, FLOATS, namespace="ops", half="", errors=(
        *misfit("histogramdd", (3,), [2], words=("self", "(3,)")),
        *misfit("histogramdd", (4, 2), [2, 2, 2], words=("bins", "3", "2")),
    )),
    differentiable("mode", _mode, _frequent, _ORDERED, errors=(
        *misfit("", (2, 3), 2, words=("2",), error=IndexError),
        *misfit("mode", (2, 0), 1, words=("1", "(2, 0)"), error=(IndexError, RuntimeError)),
    )),
    differentiable("nanmedian", _middle, _holed_all, _ORDERED),
    differentiable("nanmedian", _nanmedian, _holed_medians, _ORDERED, errors=misfit(
        "nanmedian", (2, 0), 1, words=("1", "(2, 0)"), error=(IndexError, RuntimeError)
    )),
    differentiable("nanquantile", _quantile_by(np.nanquantile), _quantiles, FLOATS, out=True, constant=(1,),
                   half="", rtol={"float32": 1e-5}, errors=misfit("nanquantile", (3,), -0.5, words=("q", "-0.5"))),
    OpRecord("nonzero_static", _nonzero_static, _places, ("bool", *_ORDERED, "complex64"), out=True, errors=misfit(
        "nonzero_static", (3,), size=-1, words=("size", "-1")
    )),
    differentiable("quantile", _quantile_by(np.quantile), _quantiles, FLOATS, out=True, constant=(1,), half="",
                   rtol={"float32": 1e-5}, errors=(
        *misfit("quantile", (3,), 1.5, words=("q", "1.5")),
        *misfit("quantile", (3,), np.zeros((2, 2), np.float32), words=("q", "(2, 2)")),
        *misfit("quantile", (3,), np.zeros(2, np.float64), words=("q", "float64", "float32")),
        *misfit("quantile", (0,), 0.5, words=("self",)),
        *misfit("quantile", (3,), 0.5, interpolation="cubic", words=("interpolation", "cubic")),
        *misfit("quantile", np.zeros(3, np.int64), 0.5, words=("int64",)),
    )),
    differentiable("renorm", _renorm, calls(((3, 4), 2, 0, 1.0), ((3, 4), 1, -1, 2.0), ((2, 3, 2), 3, 1, 0.5),
                                            ((3, 4), 2, 0, 100.0), ((3, 4), np.inf, 0, 1.0)),
                   FLOATS_AND_COMPLEX, in_place=True, out=True, half="largest", errors=(
        *misfit("renorm", (3,), 2, 0, 1.0, words=("self", "(3,)")),
        *misfit("renorm", (2, 3), 0, 0, 1.0, words=("p",)),
        *misfit("renorm", (2, 3), 2, 0, -1.0, words=("maxnorm",)),
        *misfit("", (2, 3), 2, 2, 1.0, words=("2",), error=IndexError),
    )),
    differentiable("segment_reduce", _segment_reduce, _segments, FLOATS, second=False, half="largest", errors=(
        *misfit("segment_reduce", (3,), "middle", lengths=np.int64([3]), words=("reduce", "middle")),
        *misfit("segment_reduce", (3,), "sum", words=("lengths", "offsets")),
        *misfit("segment_reduce", (3,), "sum", lengths=np.int64([2]), words=("3",)),
        *misfit("segment_reduce", (3,), "sum", lengths=np.int64([4]), words=("3",)),
        *misfit("segment_reduce", (3,), "sum", lengths=np.int64([-1, 4]), words=("-1",)),
    )),
]  # fmt: skip
