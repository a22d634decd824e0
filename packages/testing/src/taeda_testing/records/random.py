"""Records of random tensors: their shapes and dtypes, and their values where chance leaves no choice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taeda_testing.arrays import SHAPES, random_array
from taeda_testing.record import FLOATS, REALS, OpRecord, Sample
from taeda_testing.sampling import Sampler
from taeda_testing.wrong import misfit

_SHAPES = ((3,), (2, 3), (0,), (0, 3, 1))

_BOUNDED = ("bool", *REALS)


def _chance(name, reference, samples, dtypes=FLOATS, **more):
    return OpRecord(name, reference, samples, dtypes, half="", **more)


def _options(*rest: tuple, low: float = -4, high: float = 4) -> Sampler:
    """Arrays of every shape, each with every set of further arguments."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in SHAPES:
            for args in rest:
                yield Sample((random_array(rng, shape, dtype, low, high), *args))

    return samples


def _made(*calls: tuple, sized: bool = True) -> Sampler:
    """Calls that make a tensor of a dtype: arguments before the size."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for args in calls:
            for shape in SHAPES if sized else ((),):
                yield Sample((*args, shape) if sized else args, {"dtype": np.dtype(dtype)})

    return samples


def _sizes(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample((shape,))
        yield Sample(shape, {"dtype": np.dtype(dtype)})
        yield Sample((list(shape),), {"dtype": np.dtype(dtype), "requires_grad": False})


def _like(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in _SHAPES:
        yield Sample((np.zeros(shape, dtype),))
        yield Sample((np.zeros(shape, dtype),), {"dtype": np.dtype("float64")})


def _shaped(*size, dtype=np.float32, requires_grad=False):
    return np.zeros(size[0] if isinstance(size[0], (tuple, list)) else size, dtype)


def _filled(x, value):
    return np.full(x.shape, value, x.dtype)


def _integers(*args, dtype=np.int64):
    *bounds, size = args
    return np.full(size, bounds[0] if len(bounds) > 1 else 0, dtype)


def _integers_like(x, *bounds, dtype=None):
    return np.full(x.shape, bounds[0] if len(bounds) > 1 else 0, dtype or x.dtype)


def _sure(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((np.asarray(rng.integers(0, 2, shape)).astype(dtype),))


def _given(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, p in (((3,), (3,)), ((2, 3), (3,)), ((), ())):
        yield Sample((np.zeros(shape, dtype), np.asarray(rng.integers(0, 2, p)).astype(np.float32)))


def _means(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for mean, std in (((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((0,), (0,))):
        yield Sample((random_array(rng, mean, dtype), np.zeros(std, dtype)))
    yield Sample((random_array(rng, (2, 3), dtype), 0.0))
    yield Sample((2.5, np.zeros((2, 3), dtype)))


def _categories(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for rows in ((), (1,), (4,), (0,)):
        weights = np.eye(5, dtype=dtype)[rng.integers(0, 5, rows)]
        yield Sample((weights * np.asarray(3, dtype), 1))
        yield Sample((weights, 7, True))


def _drawn(weights, n, replacement=False):
    return np.repeat(np.argmax(weights, -1)[..., None], n, -1)


def _refused(name: str, *args, words: tuple[str, ...], **options):
    return misfit(name, *args, words=words, error=(RuntimeError, ValueError, TypeError), **options)


RECORDS = [
    _chance("bernoulli", np.copy, _sure, behaviours=("bernoulli and geometric",)),
    _chance("bernoulli", _filled, _options((0.0,), (1.0,)), _BOUNDED, errors=_refused(
        "bernoulli", (2,), 1.5, words=("p", "1.5")
    )),
    _chance("bernoulli_", _filled, _options((0.0,), (1.0,)), _BOUNDED, errors=(
        *_refused("bernoulli_", (2,), -0.5, words=("p", "-0.5")),
    ), writes=(0,), behaviours=("bernoulli and geometric",)),
    _chance("bernoulli_", lambda x, p: np.broadcast_to(p, x.shape).astype(x.dtype), _given, writes=(0,)),
    _chance("cauchy_", lambda x, *_: x, _options((), (1.0, 2.0)), values=False, errors=_refused(
        "cauchy_", (2,), 0.0, -1.0, words=("sigma", "-1")
    ), writes=(0,), behaviours=("cauchy and exponential",)),
    _chance("exponential_", lambda x, *_: x, _options((), (2.0,)), values=False, errors=_refused(
        "exponential_", (2,), -1.0, words=("lambd", "-1")
    ), writes=(0,), behaviours=("cauchy and exponential",)),
    _chance("geometric_", lambda x, *_: x, _options((0.5,)), REALS, values=False, errors=(
        *_refused("geometric_", (2,), 0.0, words=("p", "0")),
        *_refused("geometric_", (2,), 1.5, words=("p", "1.5")),
    ), writes=(0,), behaviours=("bernoulli and geometric",)),
    _chance("log_normal_", lambda x, *_: x, _options((), (0.0, 1.0)), values=False, errors=_refused(
        "log_normal_", (2,), 0.0, -1.0, words=("std", "-1")
    ), writes=(0,), behaviours=("uniform and normal",)),
    _chance("multinomial", _drawn, _categories, errors=(
        *_refused("multinomial", np.ones(2, np.float32), 3, words=("3", "2")),
        *_refused("multinomial", np.ones(2, np.float32), 0, words=("num_samples", "0")),
        *_refused("multinomial", (1, 1, 2), 1, words=("self", "(1, 1, 2)")),
        *_refused("multinomial", np.int64([1, 2]), 1, words=("self", "int64")),
        *_refused("multinomial", np.float32([1, -1]), 1, words=("self", "non-negative")),
        *_refused("multinomial", np.zeros((1, 2), np.float32), 1, True, words=("self", "sum up to 0")),
    ), behaviours=("multinomial",)),
    _chance("normal", lambda mean, std, size, dtype: np.full(size, mean, dtype), _made((2.5, 0.0)), creates=True,
            errors=_refused("normal", 0.0, -1.0, [2], words=("std", "-1")), behaviours=("random tensors",)),
    _chance("normal", lambda mean, std: np.asarray(mean + std).astype(np.result_type(
        *(a for a in (mean, std) if isinstance(a, np.ndarray))
    )), _means, errors=(
        *_refused("normal", (2,), -1.0, words=("std", "-1")),
        *_refused("normal", (2,), np.float32([1, -2]), words=("std", "-2")),
    )),
    _chance("normal_", lambda x, mean, std: _filled(x, mean), _options((2.5, 0.0)), errors=_refused(
        "normal_", (2,), 0.0, -1.0, words=("std", "-1")
    ), writes=(0,), behaviours=("uniform and normal",)),
    _chance("poisson", np.zeros_like, _options((), low=0, high=0), behaviours=("poisson",)),
    _chance("rand", _shaped, _sizes, creates=True, values=False, errors=_refused("", [-2], words=("-2",)),
            behaviours=("random tensors",)),
    _chance("rand_like", lambda x, dtype=None: x.astype(dtype or x.dtype), _like, values=False,
            behaviours=("random tensors",)),
    _chance("randint", _integers, _made((3, 4), (-2, -1), (1,)), ("int8", "int64", *FLOATS), creates=True,
            errors=(*_refused("randint", 4, 4, [2], words=("low", "4")),
                    *_refused("randint", 0, 300, [2], dtype=np.dtype("uint8"), words=("high", "300", "uint8")),
                    *_refused("randint", -1, 3, [2], dtype=np.dtype("uint8"), words=("low", "-1", "uint8"))),
                    behaviours=("random tensors",)),
    _chance("randint_like", _integers_like, _options((3, 4), (1,)), _BOUNDED[1:], errors=_refused(
        "randint_like", (2,), 4, 4, words=("low", "4")
    ), behaviours=("random tensors",)),
    _chance("randn", _shaped, _sizes, creates=True, values=False, errors=_refused("", [-2], words=("-2",)),
            behaviours=("random tensors",)),
    _chance("randn_like", lambda x, dtype=None: x.astype(dtype or x.dtype), _like, values=False,
            behaviours=("random tensors",)),
    _chance("random_", lambda x, *bounds: _integers_like(x, *bounds), _options((3, 4), (1,)), _BOUNDED[1:],
            errors=_refused(
        "random_", (2,), 4, 4, words=("low", "high", "4")
    ), writes=(0,), behaviours=("random integers",)),
    _chance("random_", lambda x, *bounds: _integers_like(x, *bounds), _options((3, 4)), ("uint8",), errors=_refused(
        "random_", np.zeros(2, np.uint8), 0, 300, words=("high", "300", "uint8")
    ), writes=(0,)),
    _chance("randperm", lambda n, dtype: np.zeros(n, dtype), _made((0,), (1,), sized=False), REALS, creates=True,
            errors=(*_refused("randperm", -1, words=("n", "-1")),
                    *misfit("randperm", 300, dtype=np.dtype("uint8"), words=("n", "300", "uint8"))),
                    behaviours=("permutations",)),
    _chance("uniform_", lambda x, a, b: _filled(x, a), _options((2.5, 2.5)), errors=(
        *_refused("uniform_", (2,), 2.0, 1.0, words=("a", "b", "2", "1")),
        *_refused("uniform_", (2,), 0.0, float("inf"), words=("a", "b", "inf")),
    ), writes=(0,), behaviours=("uniform and normal",)),
]  # fmt: skip
