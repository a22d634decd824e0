"""Records of core operators that stand behind others: sums of products, extrema with indices, running extrema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import ALL, COMPLEX, FLOATS, NUMBERS, REALS, OpRecord, Sample
from taeda_testing.sampling import Sampler, binary, unary
from taeda_testing.wrong import misfit

_GRAD = ("float64",)
_LOOSE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-3, "complex64": 1e-3}}


def _sums(*shapes: tuple[tuple[int, ...], ...]) -> Sampler:
    """Operands of a sum of a matrix and a product."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for operands in shapes:
            arrays = [random_array(rng, shape, dtype) for shape in operands]
            yield Sample((*arrays,))
            yield Sample((*arrays,), {"beta": 2, "alpha": 3})
            if np.dtype(dtype).kind == "c":
                yield Sample((*arrays,), {"beta": 0.5 - 1j, "alpha": 1 + 2j})

    return samples


def _added(x: np.ndarray, a: np.ndarray, b: np.ndarray, beta: int = 1, alpha: int = 1) -> np.ndarray:
    return np.asarray(beta * x + alpha * (a @ b)).astype(x.dtype)


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


def _filled(x: np.ndarray, dim: int, index: np.ndarray, value: float) -> np.ndarray:
    out = np.moveaxis(x.copy(), dim, 0)
    out[index] = value
    return np.moveaxis(out, 0, dim)


def _fills(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, dim in (((5,), 0), ((2, 3), 1), ((3, 4, 2), -2)):
        index = rng.integers(0, shape[dim], (2,))
        yield Sample((random_array(rng, shape, dtype), dim, index, 1))


def _clones(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype),))


def _limits(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((random_array(rng, shape, dtype), 1))


def _sign(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.trunc(np.true_divide(a, b)).astype(a.dtype)


RECORDS = [
    OpRecord("addmm", _added, _sums(((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((2, 2), (2, 0), (0, 2))),
             (*FLOATS, *COMPLEX), _GRAD, family="linalg", in_place=True, out=True, **_LOOSE,
             errors=misfit("addmm", (2, 4), (2, 3), (5, 4), words=("mat2", "3", "5"))),
    OpRecord("addmv", _added, _sums(((2,), (2, 3), (3,)), ((1,), (1, 1), (1,))),
             (*FLOATS, *COMPLEX), _GRAD, family="linalg", in_place=True, out=True, **_LOOSE,
             errors=misfit("addmv", (2,), (2, 3), (4,), words=("vec", "3", "4"))),
    OpRecord("baddbmm", _added, _sums(((4, 2, 5), (4, 2, 3), (4, 3, 5)), ((2, 1), (3, 2, 4), (3, 4, 1))),
             (*FLOATS, *COMPLEX), _GRAD, family="linalg", in_place=True, out=True, **_LOOSE,
             errors=misfit("baddbmm", (2, 2), (2, 2, 3), (2, 4, 2), words=("batch2", "3", "4"))),
    OpRecord("max", _extremum(np.max, np.argmax), _distinct, REALS, _GRAD, family="reduce",
             errors=misfit("max", (2, 3), 2, words=("dim", "2"), error=IndexError)),
    OpRecord("min", _extremum(np.min, np.argmin), _distinct, REALS, _GRAD, family="reduce",
             errors=misfit("min", (2, 0), 1, words=("1", "(2, 0)"), error=(IndexError, RuntimeError))),
    OpRecord("cummax", _running(np.greater_equal), _along, REALS, _GRAD, family="reduce",
             errors=misfit("cummax", (2, 3), -3, words=("dim", "-3"), error=IndexError)),
    OpRecord("cummin", _running(np.less_equal), _along, REALS, _GRAD, family="reduce",
             errors=misfit("cummin", (2, 3), 2, words=("dim", "2"), error=IndexError)),
    OpRecord("logcumsumexp", lambda x, dim: np.logaddexp.accumulate(x, axis=dim), _along, FLOATS, _GRAD,
             family="reduce", out=True,
             errors=misfit("logcumsumexp", (3,), 1, words=("dim", "1"), error=IndexError)),
    OpRecord("index_fill", _filled, _fills, ALL, _GRAD, family="index", in_place=True,
             errors=misfit("", (3,), 0, np.int64([3]), 1, words=("index", "3"), error=IndexError)),
    OpRecord("clone", np.copy, _clones, ALL, _GRAD, family="cast"),
    OpRecord("clamp_min", lambda x, low: np.maximum(x, np.asarray(low, x.dtype)), _limits, REALS, _GRAD,
             in_place=True, family="arith"),
    OpRecord("clamp_max", lambda x, high: np.minimum(x, np.asarray(high, x.dtype)), _limits, REALS, _GRAD,
             in_place=True, family="arith"),
    OpRecord("sgn", _sign, unary(1, 4), NUMBERS, _GRAD, family="arith", in_place=True, out=True),
    OpRecord("trunc_divide", _truncated, binary(-9, 9, other=(1, 4)), REALS, namespace="ops", family="arith"),
]  # fmt: skip
