"""Sample generators that families share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import Sample

Sampler = Callable[[str, np.random.Generator], Iterator[Sample]]
Domains = tuple[tuple[float, float, bool], ...]
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e30)


def over(domains: Domains) -> Callable[[Sampler], Sampler]:
    """Says from where a sampler draws the operands of a function of each element; see `OpRecord.domains`."""

    def mark(samples: Any) -> Any:
        samples.domains = domains
        return samples

    return mark


def unary(low: float = -4, high: float = 4, special: bool = False, **kwargs: Any) -> Sampler:
    """Arrays of every shape, and special values where the function is defined on all of them."""

    @over(() if kwargs else ((low, high, special),))
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in SHAPES:
            yield Sample((random_array(rng, shape, dtype, low, high),), dict(kwargs))
        if special and np.dtype(dtype).kind == "f":
            with np.errstate(over="ignore"):
                yield Sample((np.array(SPECIAL * 3, dtype),), dict(kwargs), "special values")

    return samples


PAIRS = (
    ((), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1, 4), (3, 1)),
    ((0, 3), (1, 3)),
    ((2, 3), ()),
    ((37,), (37,)),
)


def binary(
    low: float = -4, high: float = 4, other: tuple[float, float] | None = None, special: bool = False
) -> Sampler:
    """Pairs of arrays that broadcast; ``other`` bounds the second."""
    second = other or (low, high)

    @over(((low, high, special), (*second, special)))
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in PAIRS:
            yield Sample((random_array(rng, a, dtype, low, high), random_array(rng, b, dtype, *second)))
        if special and np.dtype(dtype).kind == "f":
            values = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], dtype)
            yield Sample((values[:, None].copy(), values), {}, "special values")

    return samples


def with_numbers(samples: Sampler, number: float) -> Sampler:
    """Other samples, and some whose last operand is a number."""

    @over(getattr(samples, "domains", ()))
    def more(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        yield from samples(dtype, rng)
        for sample in itertools.islice(samples(dtype, rng), 3):
            yield Sample((*sample.args[:-1], number), sample.kwargs)

    return more


def reduction(
    low: float = -4, high: float = 4, tuples: bool = True, empty: bool = True, **kwargs: Any
) -> Sampler:
    """Arrays with every kind of ``dim`` and ``keepdim``."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((5,), (2, 3), (3, 4, 2), (70, 9)):
            array = random_array(rng, shape, dtype, low, high)
            yield Sample((array,), dict(kwargs))
            for dim in range(-1, len(shape)):
                for keepdim in (False, True):
                    yield Sample((array,), {"dim": dim, "keepdim": keepdim, **kwargs})
            if tuples and len(shape) > 1:
                yield Sample((array,), {"dim": (0, -1), "keepdim": False, **kwargs})
        yield Sample((random_array(rng, (), dtype, low, high),), dict(kwargs))
        if empty:
            yield Sample((random_array(rng, (0, 3), dtype, low, high),), {"dim": 1, **kwargs})
            yield Sample((random_array(rng, (2, 0), dtype, low, high),), {"dim": 1, **kwargs})

    return samples


def calls(*cases: tuple[Any, ...]) -> Sampler:
    """An array of each case's shape, and what follows the shape as further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, *rest in cases:
            yield Sample((random_array(rng, shape, dtype), *rest))

    return samples


def sized(*cases: tuple[Any, ...]) -> Sampler:
    """Calls whose tuples of sizes stand for arrays."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for case in cases:
            yield Sample(
                tuple(random_array(rng, a, dtype, -3, 3) if isinstance(a, tuple) else a for a in case)
            )

    return samples


def lists(*cases: tuple[Any, ...]) -> Sampler:
    """A list of arrays of each case's shapes, and what follows the shapes as further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shapes, *rest in cases:
            yield Sample(([random_array(rng, shape, dtype) for shape in shapes], *rest))

    return samples


def mostly_zero(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Arrays of which about half of the elements are zero."""
    for shape in ((6,), (3, 4), (2, 2, 3), (0, 2), ()):
        kept = random_array(rng, shape, "bool").astype(dtype)
        yield Sample((np.asarray(random_array(rng, shape, dtype) * kept),))


def with_masks(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    """Arrays with masks that broadcast to their shapes."""
    for shape, mask in (((5,), (5,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((0,), (0,)), ((), ())):
        yield Sample((random_array(rng, shape, dtype), np.asarray(rng.integers(0, 2, mask).astype(bool))))


def with_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction called with ``dim`` and ``keepdim``."""

    def call(array: np.ndarray, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
        return function(array, axis=dim, keepdims=keepdim, **kwargs)

    return call


def float_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """Integers and bool go to float32, the default float, before the function."""

    def call(*arrays: Any, **kwargs: Any) -> Any:
        floats = [
            a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype.kind in "biu" else a for a in arrays
        ]
        return function(*floats, **kwargs)

    return call
